import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDirectoryGuard } from '../../../src/files/directory-guard.ts'
import { batchCommand } from '../../../src/jobs/batch-command.ts'
import { begin } from '../../support/begin-engine.ts'

let files: string

beforeEach(() => {
  files = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-files-')))
  for (const name of ['project', 'other']) mkdirSync(join(files, name))
})

afterEach(() => rmSync(files, { recursive: true }))

const guard = () => createDirectoryGuard({ own: [], allow: [], homes: [], configFile: '/config.yaml' })

describe('the directory of a batch', () => {
  const batch = (cwd: string) => ({
    task: 'two commands',
    agentType: 'custom',
    agent: { command: batchCommand({ commands: ['ls'], cwd }) },
    runtime: 'batch',
  })

  it('is checked for the client at submit, although its commands are submitted later', async () => {
    const { deputy, store } = await begin([], { checkDirectory: guard() })
    const directories = [join(files, 'project')]
    symlinkSync(join(files, 'other'), join(files, 'project/link'))
    for (const cwd of [join(files, 'other'), join(files, 'project/link'), '/etc'])
      await expect(deputy.submit(batch(cwd), 'mcp', { directories }), cwd).rejects.toMatchObject({
        code: 'denied',
      })
    await expect(deputy.submit(batch(join(files, 'other')), 'mcp')).rejects.toMatchObject({ code: 'denied' })
    const { job_id } = await deputy.submit(batch(`${files}/other/../project`), 'mcp', { directories })
    const { agent } = (await store.getManifest(job_id)) ?? {}
    expect(agent?.command).toEqual(batchCommand({ commands: ['ls'], cwd: join(files, 'project') }))
  })

  it('cannot be swapped before its commands are submitted', async () => {
    const check = guard()
    const cwd = await check(join(files, 'project'), [files])
    renameSync(join(files, 'project'), join(files, 'moved'))
    symlinkSync(join(files, 'other'), join(files, 'project'))
    await expect(check(cwd, [cwd])).rejects.toMatchObject({ code: 'denied' })
  })
})
