import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

it('has a reference that says what the schemas and commands say', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const check = spawnSync(process.execPath, ['scripts/generate-docs.js', '--check'], { cwd: root })
  expect(check.stderr.toString()).toBe('')
  expect(check.status).toBe(0)
})
