import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Between processes of Deputy, for its tests, or noticed only to say that it is not needed any more. */
const INTERNAL = [
  ...['DEPUTY_BOX', 'DEPUTY_CONNECT', 'DEPUTY_JOB', 'DEPUTY_MACHINE', 'DEPUTY_FAULT_POINT'],
  'PROXMOX_ADMIN_PATH',
]
const READ =
  /(?:\benv\.|')((?:DEPUTY|PROXMOX|CLUSTER|DEFAULT|CALLBACK|MCP|DOCKER|CONTAINER|REGISTRY)_[A-Z0-9_]+)\b/g

describe('the reference of environment variables', () => {
  it('has every variable that the source reads', () => {
    const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.ts'))
      .map(path => readFileSync(join(ROOT, 'src', path), 'utf8'))
    const read = new Set(sources.flatMap(text => [...text.matchAll(READ)].map(match => match[1]!)))
    expect(read.size).toBeGreaterThan(50)
    const page = readFileSync(join(ROOT, 'docs/reference/configuration.md'), 'utf8')
    const missing = [...read].filter(name => !INTERNAL.includes(name) && !page.includes(`\`${name}\``))
    expect(missing.sort()).toEqual([])
  })
})
