#!/usr/bin/env node
// Runs the demo and draws what it printed: docs/images/demo.svg. Build first.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { terminalSvg } from './terminal-svg.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const { stdout, status } = spawnSync(process.execPath, ['dist/cli/main.js', 'demo'], {
  cwd: root,
  encoding: 'utf8',
  env: { ...process.env, FORCE_COLOR: '1' },
})
if (status !== 0) throw new Error(`the demo ended with ${status}`)
// What differs from one run to the next, or from one computer to another, says nothing here.
const text = stdout
  .replace(/process \d+/, 'process 4711')
  .replace(/deputy-demo-\w+/g, 'deputy-demo-x7Kq')
  .replace(/could not list \S+/, 'could not list /home/you')
  .replace(/.*\(in a checkout.*\n/, '')
mkdirSync(new URL('../docs/images', import.meta.url), { recursive: true })
writeFileSync(
  new URL('../docs/images/demo.svg', import.meta.url),
  terminalSvg(`\x1b[2m$\x1b[22m deputy demo\n${text}`, { title: 'deputy demo' }),
)
