import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openStore } from '../../../src/store/sqlite-store.ts'
import { agreesWithModel } from '../../support/store-model.ts'

it('agrees with the model for random operations in random order', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-model-'))
  try {
    await expect(
      agreesWithModel(async run => openStore(join(directory, `${run}.db`)), 60),
    ).resolves.toBeUndefined()
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
