// Copies the shell programs that the code reads at run time from src/ into dist/, or into the directory that is named:
// tsc emits only what it compiles.
import { cpSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../src', import.meta.url))
const target = process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url))

cpSync(source, target, { recursive: true, filter: path => !/\.ts$/.test(path) })
