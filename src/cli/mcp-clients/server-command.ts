import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The command line that starts this installation of Deputy, in its most durable form. */
export const serverCommand = (
  env: NodeJS.ProcessEnv,
  /** The client has no PATH in which `deputy` or `npx` could be found. */
  absolute: boolean,
): { command: string; args: string[] } => {
  const main = fileURLToPath(new URL('../main.js', import.meta.url))
  // The copy of npx is temporary, so write the npx call itself.
  if (/[/\\]_npx[/\\]/.test(main)) return { command: 'npx', args: ['-y', 'deputy-mcp', 'mcp'] }
  if (absolute) return { command: process.execPath, args: [main, 'mcp'] }
  for (const directory of (env.PATH ?? '').split(delimiter))
    if (directory !== '' && isSame(join(directory, 'deputy'), main))
      return { command: 'deputy', args: ['mcp'] }
  return { command: process.execPath, args: [main, 'mcp'] }
}

const isSame = (candidate: string, main: string): boolean => {
  try {
    accessSync(candidate, constants.X_OK)
    return realpathSync(candidate) === realpathSync(main)
  } catch {
    return false
  }
}
