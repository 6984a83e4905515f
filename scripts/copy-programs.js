// Copies the shell programs that the code reads at run time into dist/: tsc emits only what it compiles.
import { cpSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const at = path => fileURLToPath(new URL(`../${path}`, import.meta.url))

for (const program of ['runner/program', 'guest/program'])
  cpSync(at(`src/${program}`), at(`dist/${program}`), { recursive: true })
