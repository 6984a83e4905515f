import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { homedir, userInfo } from 'node:os'
import { join } from 'node:path'
import { killByEnvironment } from '../local/kill-by-environment.ts'
import type { LaunchPlan } from '../local/local-machine.ts'
import type { ShimConfig } from '../local/shim-config.ts'

/** Set in the environment of every process of a job, to find and kill what it leaves. */
export const HOST_VARIABLE = 'DEPUTY_MACHINE'

/** Plans a plain process in a private directory, without isolation. */
export const planHost = (config: ShimConfig, name: string): LaunchPlan => {
  const directory = join(config.dir, `${config.id}.d`, `work-${name}`)
  mkdirSync(directory, { mode: 0o700 })
  const { username } = userInfo()
  return {
    argv: ['setsid', '/bin/sh'],
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    fdContents: [],
    reportsInitPid: false,
    cgroup: null,
    isolation: [`none: ran on this computer as ${username}`],
    directory,
    sessionDirectory: join(config.dir, `${config.id}.d`),
    filesRoot: directory,
    hasPidNamespace: false,
    diskPaths: [],
    killLeftovers: () => killByEnvironment(HOST_VARIABLE, directory),
    cleanUp: () => rm(directory, { recursive: true, force: true }),
    jobEnv: { [HOST_VARIABLE]: directory, HOME: homedir(), USER: username },
  }
}
