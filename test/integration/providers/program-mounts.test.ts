import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHarness, type Harness } from '../../support/providers.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf } from './provider-contract.ts'

for (const { name, subject, skip } of SANDBOXES.slice(0, 2))
  describe.skipIf(skip !== undefined)(`programs from private directories (${name})`, () => {
    let harness: Harness
    let home: string
    beforeAll(async () => {
      harness = await createHarness(subject)
      // As in a home directory: nobody else can enter it.
      home = mkdtempSync(join(tmpdir(), 'deputy-home-'))
      chmodSync(home, 0o700)
      mkdirSync(join(home, 'bin'))
      mkdirSync(join(home, 'lib/tool/inner'), { recursive: true })
      writeFileSync(join(home, 'private.txt'), 'private')
      writeFileSync(join(home, 'bin/plain'), '#!/bin/sh\necho plain "$@"\n', { mode: 0o755 })
      writeFileSync(join(home, 'lib/tool/package.json'), '{"bin": {"tool": "./cli.sh"}}')
      // As `npm install x` leaves it in the directory it was run in.
      writeFileSync(join(home, 'package.json'), '{"dependencies": {"x": "1.0.0"}}')
      mkdirSync(join(home, 'lib/node_modules/@scope/kit/bin'), { recursive: true })
      writeFileSync(join(home, 'lib/node_modules/@scope/kit/data'), 'kit')
      writeFileSync(join(home, 'lib/node_modules/neighbour'), '')
      writeFileSync(
        join(home, 'lib/node_modules/@scope/kit/bin/kit'),
        '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../data"\n',
        { mode: 0o755 },
      )
      symlinkSync('../lib/node_modules/@scope/kit/bin/kit', join(home, 'bin/kit'))
      writeFileSync(join(home, 'lib/tool/inner/data'), 'data')
      writeFileSync(
        join(home, 'lib/tool/cli.sh'),
        '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/inner/data"\n',
        { mode: 0o755 },
      )
      symlinkSync('../lib/tool/cli.sh', join(home, 'bin/tool'))
    })
    afterAll(async () => {
      await harness.dispose()
      rmSync(home, { recursive: true, force: true })
    })

    it('are mounted with their package only', async () => {
      const programs = [join(home, 'bin/plain'), join(home, 'bin/tool'), join(home, 'bin/kit')]
      const { outcome, sink } = await harness.run(
        {
          task: `plain hello; tool; kit; echo; ls ${home} ${home}/bin ${home}/lib/node_modules; (echo x >>${home}/bin/plain) 2>/dev/null || echo read-only`,
        },
        { programs },
      )
      expect(exitOf(outcome).code).toBe(0)
      expect(sink.text()).toBe(
        `plain hello\ndatakit\n${home}:\nbin\nlib\n\n${home}/bin:\nkit\nplain\ntool\n\n${home}/lib/node_modules:\n@scope\nread-only\n`,
      )
    })

    it('lose no output when they replace a warm machine', async () => {
      const task = Array.from({ length: 12 }, (_, i) => `echo ${i}`).join('; sleep 0.001; ')
      const lines = Array.from({ length: 12 }, (_, i) => `${i}\n`).join('')
      const printed: string[] = []
      const again = async (): Promise<void> => {
        for (let time = 0; time < 15; time++) {
          const { sink } = await harness.run({ task }, { programs: [join(home, 'bin/plain')] })
          printed.push(sink.text())
        }
      }
      await Promise.all(Array.from({ length: 6 }, again))
      expect(printed.filter(text => text !== lines)).toEqual([])
    })

    it('fail the job before it starts when they do not exist', async () => {
      const { outcome } = await harness.run({ task: 'x' }, { programs: [join(home, 'bin/nothing')] })
      expect(outcome).toMatchObject({ kind: 'not-started', error: { code: 'invalid' } })
    })
  })
