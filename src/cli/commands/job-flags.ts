import { type FlagSpecs, JSON_FLAG } from '../args/spec.ts'

/** The flags of `run` and `submit`: a manifest, spelt on the command line. */
export const MANIFEST_FLAGS = {
  manifest: {
    type: 'string',
    short: 'm',
    value: 'FILE',
    summary: 'Manifest to start from, JSON or YAML; - is stdin',
  },
  agent: {
    type: 'string',
    short: 'a',
    value: 'NAME',
    summary: 'script (default), claude, custom or a preset',
  },
  model: { type: 'string', value: 'NAME', summary: 'Model of the claude agent' },
  timeout: { type: 'duration', short: 't', value: 'TIME', summary: 'End the job after 90, 90s, 5m, 2h…' },
  env: {
    type: 'list',
    short: 'e',
    value: 'K=V',
    summary: 'Environment variable; K alone takes the value from here',
  },
  secret: { type: 'list', short: 's', value: 'NAME', summary: 'Configured secret, given as environment' },
  file: { type: 'list', value: 'PATH[:AS]', summary: 'Put a file into the workspace first' },
  workspace: {
    type: 'string',
    short: 'w',
    value: 'DIR',
    summary: 'Copy a directory in, without what .gitignore names',
  },
  artifact: { type: 'list', value: 'GLOB', summary: 'Bring these files back' },
  runtime: {
    type: 'string',
    short: 'r',
    value: 'NAME',
    summary: 'Where to run: auto (default), sandbox, ssh, proxmox, host',
  },
  network: { type: 'string', value: 'none|full|DOMAIN,…', summary: 'What the job may reach (default none)' },
  cpu: { type: 'number', value: 'N', summary: 'CPUs' },
  memory: { type: 'string', value: 'SIZE', summary: 'Memory, such as 512M or 2G' },
  disk: { type: 'string', value: 'SIZE', summary: 'Disk' },
  node: { type: 'string', value: 'NAME', summary: 'Run on this node of the cluster' },
  requires: {
    type: 'string',
    value: 'K=V,…',
    summary: 'os=linux,arch=arm64,capabilities=docker+gpu,label.zone=eu',
  },
  template: { type: 'string', value: 'NAME', summary: 'VM template' },
  keep: { type: 'boolean', summary: 'Keep the machine afterwards, for exec' },
  lease: { type: 'duration', value: 'TIME', summary: 'How long a kept machine is kept' },
  machine: { type: 'string', value: 'ID', summary: 'Run in this kept machine' },
  label: { type: 'list', short: 'l', value: 'K=V', summary: 'Label, to find the job by' },
  priority: { type: 'number', value: 'N', summary: 'Higher first, -100 to 100' },
  retries: { type: 'number', value: 'N', summary: 'Tries after failures of the machinery' },
  key: { type: 'string', value: 'TEXT', summary: 'Idempotency key: the same key gives the same job' },
  json: JSON_FLAG,
} as const satisfies FlagSpecs

export const WATCH_FLAGS = {
  quiet: { type: 'boolean', short: 'q', summary: "Only the job's own output" },
  raw: { type: 'boolean', summary: 'Let control sequences through to the terminal' },
} as const satisfies FlagSpecs
