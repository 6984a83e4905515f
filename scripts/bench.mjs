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
cpSync(`${root}package.json`, `${out}/package.json`)
const { status } = spawnSync(process.execPath, [`${out}/bench/run.js`, ...process.argv.slice(2)], {
  stdio: 'inherit',
})
process.exit(status ?? 1)
