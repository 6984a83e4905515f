#!/usr/bin/env node
import { closeSync, readdirSync, readFileSync } from 'node:fs'
import { shimConfig } from './shim-config.ts'
import { serveShim } from './shim-server.ts'

/** The process that runs local jobs. The daemon starts it; it survives the daemon. */
const main = async (): Promise<void> => {
  closeInherited()
  // Stray output must not kill the process when the daemon that read it has exited.
  process.on('SIGPIPE', () => {})
  process.on('SIGHUP', () => {})
  // Keep running after an internal error: the job is worth more than a clean exit.
  process.on('uncaughtException', error => console.error(error))
  process.on('unhandledRejection', error => console.error(error))
  try {
    await serveShim(shimConfig.parse(JSON.parse(process.argv[2] ?? '{}')))
  } catch (error) {
    // It holds nothing yet, and the daemon starts another.
    console.error(error)
    process.exit(1)
  }
}

/** Closes descriptors inherited through the daemon, which would otherwise reach the job. */
const closeInherited = (): void => {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    if (fd <= 2 || isClosedOnExec(fd)) continue
    try {
      closeSync(fd)
    } catch {
      // The descriptor of the listing itself.
    }
  }
}

const O_CLOEXEC = 0o2000000

const isClosedOnExec = (fd: number): boolean => {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0'
    return (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0
  } catch {
    return true
  }
}

await main()
