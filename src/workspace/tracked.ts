import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The ignored files below a directory that git tracks all the same, and the directories they are in. */
export const trackedFiles = async (root: string): Promise<ReadonlySet<string>> => {
  const paths = new Set<string>()
  for (const file of await listed(root)) {
    const parts = file.split('/')
    for (let length = parts.length; length > 0; length--) paths.add(parts.slice(0, length).join('/'))
  }
  return paths
}

/** Empty without git, or outside of a repository. */
const listed = async (root: string): Promise<string[]> => {
  try {
    // A file system monitor is a program that the repository names: nothing of it may run here.
    const args = [
      '-c',
      'core.fsmonitor=false',
      'ls-files',
      '-z',
      '--cached',
      '--ignored',
      '--exclude-standard',
    ]
    const { stdout } = await run('git', args, { cwd: root, maxBuffer: 256 * 1024 * 1024, timeout: 30_000 })
    return stdout.split('\0').filter(path => path !== '')
  } catch {
    return []
  }
}
