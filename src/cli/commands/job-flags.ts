import { type FlagSpecs, JSON_FLAG } from '../args/spec.ts'

/** The flags of `run` and `submit`, which build a manifest. */
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
    suggest: 'agents',
  },
  agents: { type: 'number', value: 'N', summary: 'Give the task to N agents; the job is a batch of them' },
  model: { type: 'string', value: 'NAME', summary: 'Model of the claude agent' },
  timeout: { type: 'duration', short: 't', value: 'TIME', summary: 'Cancel the job after 90, 90s, 5m, 2h…' },
  'queue-timeout': {
    type: 'duration',
    value: 'TIME',
    summary: 'Fail the job unless it starts within this time',
  },
  env: {
    type: 'list',
    short: 'e',
    value: 'K=V',
    summary: 'Environment variable; K alone copies the current value',
  },
  secret: {
    type: 'list',
    short: 's',
    value: 'NAME',
    summary: 'Configured secret, passed as an environment variable',
    suggest: 'secrets',
  },
  file: { type: 'list', value: 'PATH[:AS]', summary: 'Copy a file into the workspace' },
  workspace: {
    type: 'string',
    short: 'w',
    value: 'DIR',
    summary: 'Copy a directory into the machine, honouring .gitignore',
  },
  needs: {
    type: 'list',
    value: 'ID',
    summary: 'Start after this job has succeeded, with its artifacts in needs/ID',
  },
  artifact: { type: 'list', value: 'GLOB', summary: 'Return these files as artifacts' },
  runtime: {
    type: 'string',
    short: 'r',
    value: 'NAME',
    summary: 'Where to run: auto (default), sandbox, container, microvm, ssh, proxmox, host',
    suggest: ['auto', 'sandbox', 'container', 'microvm', 'ssh', 'proxmox', 'host'],
  },
  network: {
    type: 'string',
    value: 'none|full|DOMAIN,…',
    summary: 'Network access (default none)',
    suggest: ['none', 'full'],
  },
  cpu: { type: 'number', value: 'N', summary: 'CPUs' },
  memory: { type: 'string', value: 'SIZE', summary: 'Memory, such as 512M or 2G' },
  disk: { type: 'string', value: 'SIZE', summary: 'Disk' },
  node: { type: 'string', value: 'NAME', summary: 'Run on this node of the cluster', suggest: 'nodes' },
  requires: {
    type: 'string',
    value: 'K=V,…',
    summary: 'Such as os=linux,arch=arm64,label.zone=eu',
  },
  template: { type: 'string', value: 'NAME', summary: 'VM template' },
  image: { type: 'string', short: 'i', value: 'NAME', summary: 'Run in a container of this image' },
  pull: { type: 'string', value: 'WHEN', summary: 'Pull the image: missing (default), always, never' },
  platform: { type: 'string', value: 'OS/ARCH', summary: 'Platform of the image, such as linux/arm64' },
  gpus: { type: 'string', value: 'all|N', summary: 'GPUs of the container' },
  keep: { type: 'boolean', summary: 'Keep the machine for deputy exec' },
  lease: { type: 'duration', value: 'TIME', summary: 'How long to keep the machine' },
  machine: { type: 'string', value: 'ID', summary: 'Run in this kept machine', suggest: 'machines' },
  label: { type: 'list', short: 'l', value: 'K=V', summary: 'Label of the job' },
  priority: { type: 'number', value: 'N', summary: 'Higher first, -100 to 100' },
  retries: {
    type: 'number',
    value: 'N',
    summary: 'Retries when the machine fails before the command starts',
  },
  key: { type: 'string', value: 'TEXT', summary: 'Idempotency key: the same key returns the same job' },
  json: JSON_FLAG,
} as const satisfies FlagSpecs

export const WATCH_FLAGS = {
  quiet: { type: 'boolean', short: 'q', summary: "Print only the job's output" },
  raw: { type: 'boolean', summary: 'Pass control sequences to the terminal' },
} as const satisfies FlagSpecs
