import { randomBytes } from 'node:crypto'
import { HOLDER } from './holder.ts'
import { PROGRAM } from './program.ts'
import { shellQuote } from './quote.ts'

/** What a verb of the program is to know, as plain text. */
export type Parameters = Readonly<Record<`D_${string}`, string>>

/**
 * A request in the language of whoever gets it: a fresh shell is sent the program along, a shell that was opened
 * ahead has it, and a holder that was opened ahead reads hexadecimal lines. In each, only the last line does
 * anything: a request cut in the middle does nothing.
 */
export const requestFor =
  (parameters: Parameters, mark: string, verb: string) =>
  (greeting: string | undefined): string => {
    if (greeting === 'perl') return holderRequest({ ...parameters, D_MARK: mark, D_VERB: verb })
    const held = verb === 'attach' || (verb === 'run' && parameters.D_PLAIN === '')
    const known = held ? HOLDING : ''
    const head =
      greeting === undefined ? `${assignments(parameters)}${known}${PROGRAM}` : assignments(parameters)
    return `${head}\necho '${mark}'\n${verb}\n`
  }

/** Random, so that no output can pretend to be a frame. */
export const newMark = (): string => `deputy-${randomBytes(9).toString('hex')}`

/** For a session that waits: all that does not depend on the command is done before there is one. */
export const standbyFor = (owner: string): { script: string; greeting: RegExp } => ({
  script: `${assignments({ D_OWNER: owner })}${HOLDING}${PROGRAM}\nstandby\n`,
  greeting: /deputy-standby (perl|sh)\n/,
})

const assignments = (parameters: Parameters): string =>
  Object.entries(parameters)
    .map(([name, value]) => `${name}=${shellQuote(value)}\n`)
    .join('')

const HOLDING = assignments({ D_HOLDER: HOLDER, D_PROGRAM: PROGRAM })

/** The environment as shell text is for the shell alone. */
const holderRequest = ({ D_ENV: _, ...parameters }: Parameters): string =>
  `${Object.entries(parameters)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('hex')}\n`)
    .join('')}go\n`
