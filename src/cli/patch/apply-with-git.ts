import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { doesNotApply } from './apply.ts'

export const hasGit = async (): Promise<boolean> => (await git(['--version'], '/', undefined)).code === 0

/** `git apply` is all or nothing, refuses paths outside and writes through no symbolic link. */
export const applyWithGit = async (patch: Uint8Array, directory: string): Promise<void> => {
  const { code, stderr } = await git(['apply', '--whitespace=nowarn', '-'], directory, patch)
  if (code !== 0) throw doesNotApply(firstError(stderr))
}

const git = (
  args: readonly string[],
  cwd: string,
  input: Uint8Array | undefined,
): Promise<{ code: number; stderr: string }> =>
  new Promise(resolve => {
    // Keep git from finding a repository above the directory: paths are relative to the directory.
    const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(cwd), LC_ALL: 'C' }
    const child = spawn('git', args, { cwd, env, stdio: ['pipe', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', chunk => {
      stderr = (stderr + chunk).slice(-8192)
    })
    child.on('error', error => resolve({ code: -1, stderr: error.message }))
    child.on('close', code => resolve({ code: code ?? -1, stderr }))
    // git may exit before it has read all of the input.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })

const firstError = (stderr: string): string =>
  stderr
    .split('\n')
    .find(line => line.startsWith('error:'))
    ?.slice('error: '.length) ?? 'git gave no reason'
