import { type ChildProcess, spawn } from 'node:child_process'
import type { ExecStatus, GuestAgent, GuestDriver } from '../pve/guests/driver.ts'

/** Guests that consist of an agent: its commands are real processes here, its files are in memory. */
export const agentGuests = (): GuestDriver & { close(): void } => {
  const children = new Set<ChildProcess>()
  return {
    start: async () => {
      const agent = createAgent(children)
      return { stop: async () => {}, shutdown: async () => true, agent: () => agent }
    },
    close: () => {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

const createAgent = (children: Set<ChildProcess>): GuestAgent => {
  const files = new Map<string, Buffer>()
  const running = new Map<number, () => ExecStatus>()
  return {
    exec: async (argv, input) => {
      const child = spawn(argv[0]!, argv.slice(1))
      child.on('error', () => {})
      if (child.pid === undefined)
        throw new Error(`Failed to execute child process "${argv[0]}" (No such file or directory)`)
      children.add(child)
      const out: Buffer[] = []
      const err: Buffer[] = []
      child.stdout.on('data', chunk => out.push(chunk))
      child.stderr.on('data', chunk => err.push(chunk))
      child.stdin.end(input)
      let end: { code: number | null; signal: NodeJS.Signals | null } | undefined
      child.on('close', (code, signal) => {
        end = { code, signal }
        children.delete(child)
      })
      const { pid } = child
      running.set(pid, () => ({
        exited: end !== undefined,
        ...(end?.code !== null && end !== undefined && { exitcode: end.code }),
        ...(end?.signal && { signal: 9 }),
        out: Buffer.concat(out),
        err: Buffer.concat(err),
      }))
      return pid
    },
    // As the real one: the end of a process is told once.
    execStatus: pid => {
      const status = running.get(pid)?.()
      if (status?.exited) running.delete(pid)
      return status
    },
    readFile: async path => files.get(path) ?? Promise.reject(new Error(`failed to open file '${path}'`)),
    writeFile: async (path, content) => void files.set(path, content),
  }
}
