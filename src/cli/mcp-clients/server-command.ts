import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The command line that starts this very program again, in the form that lives longest. */
export const serverCommand = (env: NodeJS.ProcessEnv): { command: string; args: string[] } => {
  const main = fileURLToPath(new URL('../main.js', import.meta.url))
  // npx keeps its copy only for a while; asking npx again finds the next one.
  if (/[/\\]_npx[/\\]/.test(main)) return { command: 'npx', args: ['-y', 'deputy-mcp', 'mcp'] }
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
