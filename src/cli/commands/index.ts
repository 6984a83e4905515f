import type { AnyCommand } from '../command.ts'

interface Entry {
  readonly summary: string
  load(): Promise<{ default: AnyCommand }>
}

/** Every command, in the order of the help. Only the requested one is loaded. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: {
    summary: 'Run a command on an isolated machine and show its output',
    load: () => import('./run.ts'),
  },
  submit: { summary: 'Submit a job and print its id', load: () => import('./submit.ts') },
  status: { summary: 'Show the status of a job', load: () => import('./status.ts') },
  logs: { summary: 'Show the output of a job', load: () => import('./logs.ts') },
  result: {
    summary: 'Show the result of a job: exit status, output, artifacts',
    load: () => import('./result.ts'),
  },
  artifacts: { summary: 'List or download the artifacts of a job', load: () => import('./artifacts.ts') },
  patch: { summary: "Show or apply a job's changes to its workspace", load: () => import('./patch.ts') },
  cancel: { summary: 'Cancel jobs', load: () => import('./cancel.ts') },
  list: { summary: 'List jobs, newest first', load: () => import('./list.ts') },
  events: {
    summary: 'Show the events of a job, or follow all events',
    load: () => import('./events.ts'),
  },
  open: { summary: 'Open the console in the browser', load: () => import('./open.ts') },
  exec: { summary: 'Run a command in a kept machine', load: () => import('./exec.ts') },
  delete: {
    summary: 'Delete finished jobs with their output and artifacts',
    load: () => import('./delete.ts'),
  },
  machines: { summary: 'List or destroy machines', load: () => import('./machines.ts') },
  nodes: {
    summary: 'List, check, add or remove your SSH machines',
    load: () => import('./nodes.ts'),
  },
  cluster: {
    summary: "Run a command on the best node, or show the cluster's status",
    load: () => import('./cluster.ts'),
  },
  mcp: { summary: 'Serve an MCP client on stdio, or configure one', load: () => import('./mcp.ts') },
  serve: { summary: 'Run the daemon in the foreground', load: () => import('./serve.ts') },
  daemon: { summary: 'Show, start, stop or restart the daemon', load: () => import('./daemon.ts') },
  backup: { summary: 'Write all jobs, output and artifacts to a file', load: () => import('./backup.ts') },
  restore: { summary: 'Replace all jobs by those of a backup', load: () => import('./restore.ts') },
  doctor: { summary: "Check this computer's setup and print fixes", load: () => import('./doctor.ts') },
  config: {
    summary: 'Show or change the configuration',
    load: () => import('./config.ts'),
  },
  secrets: { summary: 'List the secrets that jobs may name', load: () => import('./secrets.ts') },
  proxmox: {
    summary: 'Prepare a Proxmox VE cluster, approve the calls of agents',
    load: () => import('./proxmox.ts'),
  },
  completion: { summary: 'Print the shell completion script', load: () => import('./completion.ts') },
  demo: {
    summary: 'Run four example jobs in a temporary home',
    load: () => import('./demo.ts'),
  },
  version: { summary: 'Print the version', load: () => import('./version.ts') },
  help: { summary: 'Show the help of a command', load: () => import('./help.ts') },
}
