// Compiles product and benchmarks together, so that both are what is in the tree, and runs them.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const out = `${root}.cache/bench`
rmSync(out, { recursive: true, force: true })
execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.bench.json'], {
  cwd: root,
  stdio: 'inherit',
})
execFileSync(process.execPath, ['scripts/bundle.js', '.cache/bench/src'], {
  cwd: root,
  stdio: 'inherit',
})
cpSync(`${root}package.json`, `${out}/package.json`)
execFileSync(process.execPath, [`${root}scripts/copy-programs.js`, `${out}/src`])
cpSync(`${root}test/support/containers`, `${out}/test/support/containers`, {
  recursive: true,
  filter: path => !path.endsWith('.ts'),
})
cpSync(`${root}test/vm/image`, `${out}/test/vm/image`, { recursive: true })
const { status } = spawnSync(process.execPath, [`${out}/bench/run.js`, ...process.argv.slice(2)], {
  stdio: 'inherit',
  // The image of real machines is the one of the tests.
  env: { DEPUTY_VM_CACHE: `${root}.cache/vm`, ...process.env },
})
process.exit(status ?? 1)
