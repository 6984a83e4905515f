import { type FlagSpecs, GLOBAL_FLAGS } from '../args/spec.ts'
import { COMMANDS } from '../commands/index.ts'
import { bash } from './bash.ts'
import { fish } from './fish.ts'
import { zsh } from './zsh.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** What a shell needs to know of one command. */
export interface Completable {
  readonly name: string
  readonly summary: string
  readonly words: readonly string[]
  readonly flags: readonly {
    readonly name: string
    readonly summary: string
    readonly short: string | undefined
    readonly takesValue: boolean
    readonly choices: readonly string[]
  }[]
}

/** Made from the descriptions of the commands, so it cannot drift from them. */
export const completionScript = async (shell: Shell): Promise<string> => {
  const commands = await Promise.all(Object.entries(COMMANDS).map(([name, entry]) => describe(name, entry)))
  return { bash, zsh, fish }[shell](commands)
}

const describe = async (name: string, entry: (typeof COMMANDS)[string]): Promise<Completable> => {
  const { default: command } = await entry.load()
  const flags: FlagSpecs = { ...command.flags, ...GLOBAL_FLAGS }
  return {
    name,
    summary: entry.summary,
    words: name === 'help' ? Object.keys(COMMANDS) : (command.words ?? []),
    flags: Object.entries(flags).map(([flag, spec]) => ({
      name: flag,
      summary: spec.summary,
      short: spec.short,
      takesValue: spec.type !== 'boolean',
      choices: spec.choices ?? [],
    })),
  }
}
