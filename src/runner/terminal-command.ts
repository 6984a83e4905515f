import type { TerminalSize } from '../ports.ts'
import { shellQuote as quote } from './shell-words.ts'

/**
 * Runs a command in a terminal that `script` of util-linux makes: Node cannot create one. `announce` is a shell
 * command that gets the path of the terminal as $tty, so that its size can be changed from outside.
 */
export const terminalCommand = (
  argv: readonly string[],
  size: TerminalSize,
  announce: string,
): readonly string[] => {
  const inside = `tty=$(tty); ${announce}; ${sizeCommand(size)}; exec ${argv.map(quote).join(' ')}`
  return ['sh', '-c', `${NEEDS_SCRIPT}exec script -qefc "$1" /dev/null`, 'sh', inside]
}

/** Changes the size of a terminal: of the own one, or of the one with this path. */
export const sizeCommand = ({ columns, rows }: TerminalSize, path?: string): string =>
  `stty ${path === undefined ? '' : `-F ${quote(path)} `}rows ${Math.trunc(rows)} cols ${Math.trunc(columns)} 2>/dev/null`

/** `script` runs its command with $SHELL, which may be no POSIX shell. */
const NEEDS_SCRIPT = `command -v script >/dev/null || { echo "This machine has no 'script', which makes terminals. Install it: apt-get install bsdutils"; exit 127; }
export SHELL=/bin/sh
`
