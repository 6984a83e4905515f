import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fetchArtifacts } from '../../../src/cli/fetch-artifacts.ts'
import { connect } from '../../../src/client/daemon-client.ts'
import { type Control, startControl } from '../../support/http/control.ts'

let control: Control
const directory = mkdtempSync(join(tmpdir(), 'deputy-fetch-'))
beforeAll(async () => {
  control = await startControl()
})
afterAll(async () => {
  await control.close()
  rmSync(directory, { recursive: true, force: true })
})

/** From a daemon that has stored whatever its machines sent. */
const fetch = async (path: string) => {
  const id = await control.finished({ [path]: 'evil' })
  const client = connect(control.home)
  const { artifacts } = await client.result(id)
  return fetchArtifacts(client, { id, artifacts, paths: [], directory, force: true })
}

describe('fetching artifacts', () => {
  it.each([
    '.git/commondir',
    '.git/config',
    'sub/.GIT/hooks/post-checkout',
    '.git./config',
    'git~1/config',
    '.git::$INDEX_ALLOCATION/config',
  ])("never writes into git's own files: %s", async path => {
    await expect(fetch(path)).rejects.toMatchObject({ code: 'denied' })
    expect(readdirSync(directory)).toEqual([])
  })

  it('writes files that only look similar', async () => {
    await fetch('.github/workflows/x.yml')
    expect(existsSync(join(directory, '.github/workflows/x.yml'))).toBe(true)
  })
})
