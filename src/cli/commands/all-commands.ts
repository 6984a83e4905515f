import { ownProperty } from '../../jobs/own-property.ts'
import type { AnyCommand, NamedCommand } from '../command.ts'

interface Entry {
  readonly summary: string
  load(): Promise<{ default: AnyCommand }>
}

/** Every command, in the order of the help. Only the requested one is loaded. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: {
    summary: 'Run a command on an isolated machine and show its output',
    load: () => import('./run-command.ts'),
  },
  submit: { summary: 'Submit a job and print its id', load: () => import('./submit-command.ts') },
  status: { summary: 'Show the status of a job', load: () => import('./status-command.ts') },
  logs: { summary: 'Show the output of a job', load: () => import('./logs-command.ts') },
  result: {
    summary: 'Show the result of a job: exit status, output, artifacts',
    load: () => import('./result-command.ts'),
  },
  artifacts: {
    summary: 'List or download the artifacts of a job',
    load: () => import('./artifacts-command.ts'),
  },
  patch: {
    summary: "Show or apply a job's changes to its workspace",
    load: () => import('./patch-command.ts'),
  },
  cancel: { summary: 'Cancel jobs', load: () => import('./cancel-command.ts') },
  list: { summary: 'List jobs, newest first', load: () => import('./list-command.ts') },
  events: {
    summary: 'Show the events of a job, or follow all events',
    load: () => import('./events-command.ts'),
  },
  open: { summary: 'Open the console in the browser', load: () => import('./open-command.ts') },
  exec: { summary: 'Run a command in a kept machine', load: () => import('./exec-command.ts') },
  shell: {
    summary: 'Open a terminal in the machine of a running job, or a kept one',
    load: () => import('./shell-command.ts'),
  },
  cp: { summary: 'Copy files into a machine or out of it', load: () => import('./cp-command.ts') },
  forward: {
    summary: 'Bring a port of a running job to this computer',
    load: () => import('./forward-command.ts'),
  },
  delete: {
    summary: 'Delete finished jobs with their output and artifacts',
    load: () => import('./delete-command.ts'),
  },
  machines: { summary: 'List or destroy machines', load: () => import('./machines-command.ts') },
  nodes: {
    summary: 'List, check, add or remove your SSH machines',
    load: () => import('./nodes-command.ts'),
  },
  cluster: {
    summary: "Run a command on the best node, or show the cluster's status",
    load: () => import('./cluster-command.ts'),
  },
  mcp: { summary: 'Serve an MCP client on stdio, or configure one', load: () => import('./mcp-command.ts') },
  serve: { summary: 'Run the daemon in the foreground', load: () => import('./serve-command.ts') },
  daemon: { summary: 'Show, start, stop or restart the daemon', load: () => import('./daemon-command.ts') },
  daemons: {
    summary: 'List the daemons that share a PostgreSQL database',
    load: () => import('./daemons-command.ts'),
  },
  drain: {
    summary: 'Stop the claims of a daemon and wait for its jobs',
    load: () => import('./drain-command.ts'),
  },
  backup: {
    summary: 'Write all jobs, output and artifacts to a file',
    load: () => import('./backup-command.ts'),
  },
  restore: { summary: 'Replace all jobs by those of a backup', load: () => import('./restore-command.ts') },
  doctor: {
    summary: "Check this computer's setup and print fixes",
    load: () => import('./doctor-command.ts'),
  },
  config: {
    summary: 'Show or change the configuration',
    load: () => import('./config-command.ts'),
  },
  secrets: { summary: 'List the secrets that jobs may name', load: () => import('./secrets-command.ts') },
  microvm: {
    summary: 'Make, list or remove the images of VMs on this computer',
    load: () => import('./microvm-command.ts'),
  },
  proxmox: {
    summary: 'Prepare a Proxmox VE cluster, approve the calls of agents',
    load: () => import('./proxmox-command.ts'),
  },
  completion: { summary: 'Print the shell completion script', load: () => import('./completion-command.ts') },
  demo: {
    summary: 'Run four example jobs in a temporary home',
    load: () => import('./demo-command.ts'),
  },
  version: { summary: 'Print the version', load: () => import('./version-command.ts') },
  help: { summary: 'Show the help of a command', load: () => import('./help-command.ts') },
}

/** Loads a command; undefined when there is none of this name. */
export const loadCommand = async (name: string): Promise<NamedCommand | undefined> => {
  const entry = ownProperty(COMMANDS, name)
  return entry && { name, summary: entry.summary, ...(await entry.load()).default }
}
