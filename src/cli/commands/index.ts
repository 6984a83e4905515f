import type { AnyCommand } from '../command.ts'

interface Entry {
  readonly summary: string
  load(): Promise<{ default: AnyCommand }>
}

/** Every command in the order of the help. Only the one that is asked for is loaded. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: { summary: 'Run a command on an isolated machine and stay with it', load: () => import('./run.ts') },
  submit: { summary: 'Hand over a job and print its id', load: () => import('./submit.ts') },
  status: { summary: 'Tell how a job is doing', load: () => import('./status.ts') },
  logs: { summary: 'Show what a job prints', load: () => import('./logs.ts') },
  result: { summary: 'Show how a job ended, with its output', load: () => import('./result.ts') },
  artifacts: { summary: 'List or fetch the files a job brought back', load: () => import('./artifacts.ts') },
  patch: { summary: "Show or apply a job's changes to its workspace", load: () => import('./patch.ts') },
  cancel: { summary: 'End jobs', load: () => import('./cancel.ts') },
  list: { summary: 'List jobs, newest first', load: () => import('./list.ts') },
  events: {
    summary: 'Show what happened to a job, or to all as it happens',
    load: () => import('./events.ts'),
  },
  exec: { summary: 'Run a command in a kept machine', load: () => import('./exec.ts') },
  delete: { summary: 'Forget finished jobs with all they left', load: () => import('./delete.ts') },
  machines: { summary: 'List or destroy machines', load: () => import('./machines.ts') },
  nodes: {
    summary: 'List, check, add or remove machines of your own',
    load: () => import('./nodes.ts'),
  },
  cluster: {
    summary: 'Send a command where it fits best, or look at the cluster',
    load: () => import('./cluster.ts'),
  },
  mcp: { summary: 'Serve an MCP client on stdio, or set one up', load: () => import('./mcp.ts') },
  serve: { summary: 'Be the daemon, in the foreground', load: () => import('./serve.ts') },
  daemon: { summary: 'Look at, stop or restart the daemon', load: () => import('./daemon.ts') },
  doctor: { summary: 'Tell what works here and how to mend the rest', load: () => import('./doctor.ts') },
  config: {
    summary: 'Explain the configuration: values and where they come from',
    load: () => import('./config.ts'),
  },
  proxmox: {
    summary: 'Prepare a Proxmox VE cluster for jobs',
    load: () => import('./proxmox.ts'),
  },
  completion: { summary: 'Print shell completion', load: () => import('./completion.ts') },
  demo: {
    summary: 'Watch Deputy at work, in a home that is removed afterwards',
    load: () => import('./demo.ts'),
  },
  version: { summary: 'Print the version', load: () => import('./version.ts') },
  help: { summary: 'Tell how to use a command', load: () => import('./help.ts') },
}
