import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Home, resolveHome } from '../../src/config/home.ts'
import { createDamage, type Damage } from './damage.ts'
import { createJournal, type Journal } from './journal.ts'
import { type Ledger, openLedger } from './ledger.ts'

/** What every part of a run works with. */
export interface World {
  /** On the disk of the computer; it stays when the run fails. */
  readonly kept: string
  /** On a file system of its own, which faults fill. */
  readonly directory: string
  readonly home: Home
  readonly journal: Journal
  readonly ledger: Ledger
  readonly damage: Damage
  /** Of the daemon and of the command line alike: either may start the daemon. */
  readonly env: Record<string, string>
}

/** The product as it is built, not the copy that was compiled with this driver. */
export const CLI = fileURLToPath(new URL('../../../../../dist/cli/main.js', import.meta.url))

const HOME_SIZE = '256m'

export const createWorld = (kept: string): World => {
  const directory = join(kept, 'home')
  mkdirSync(directory)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `mode=700,size=${HOME_SIZE}`, 'home', directory])
  return {
    kept,
    directory,
    home: resolveHome({ DEPUTY_HOME: directory }),
    journal: createJournal(join(kept, 'journal')),
    ledger: openLedger(join(kept, 'ledger')),
    damage: createDamage(),
    env: {
      PATH: process.env.PATH ?? '',
      HOME: directory,
      DEPUTY_HOME: directory,
      DEPUTY_HTTP: 'false',
      TMPDIR: process.env.TMPDIR ?? '/tmp',
    },
  }
}

/** Written once, before the first daemon. */
export const writeConfig = (
  { home }: World,
  sections: readonly Readonly<Record<string, unknown>>[],
): void => {
  mkdirSync(home.configDir, { recursive: true })
  const own = { limits: { running: 6 }, supervision: { cleanup: 10, heartbeat: 30, grace: 1 } }
  writeFileSync(home.configFile, JSON.stringify(Object.assign({}, own, ...sections), null, 2))
}
