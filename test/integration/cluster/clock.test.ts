import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createShim } from '../../../src/cluster/remote/shim.ts'
import type { Ssh } from '../../../src/cluster/ssh/session.ts'
import { labCluster, runOn } from '../../support/labcluster.ts'
import { createSshLab, missingForSshLab, type SshLab } from '../../support/sshlab.ts'

const missing = missingForSshLab()

/** What Perl takes for the time of day is so many seconds off as a file in the home says. */
const CLOCK = `package Clock;
my $file = "$ENV{HOME}/off";
BEGIN { *CORE::GLOBAL::time = sub () { my $off = 0; if (open(my $h, '<', $file)) { $off = <$h> + 0 } CORE::time() + $off } }
1;
`

describe.skipIf(missing !== undefined).each([
  { kind: 'that counts the seconds since its start', proc: true },
  { kind: 'that has nothing but the time of day, as a Mac', proc: false },
])(`the timeout of a command on a node $kind${missing ? ` (skipped: ${missing})` : ''}`, ({ proc }) => {
  let lab: SshLab
  let cluster: ReturnType<typeof labCluster>
  let next = 0
  const off = (): string => join(lab.nodes[0]!.home, 'off')
  const newId = (): string => `c${process.pid}-${proc}-${next++}`

  beforeAll(async () => {
    lab = await createSshLab({ nodes: 1 })
    const library = join(lab.directory, 'perl')
    mkdirSync(library)
    writeFileSync(join(library, 'Clock.pm'), CLOCK)
    const real = labCluster(lab)
    const run: Ssh['run'] = request => {
      // Sessions that were opened ahead have the usual clock already.
      const text = typeof request.script === 'function' ? request.script(undefined) : request.script
      const asked = proc ? text : text.replaceAll('/proc/', '/nowhere/')
      const script = request.input ? asked : `export PERL5OPT='-I${library} -MClock'\n${asked}`
      return real.ssh.run({ ...request, script })
    }
    cluster = Object.create(real, { shim: { value: createShim({ ...real.ssh, run }, 'test') } })
  })
  beforeEach(() => rmSync(off(), { force: true }))
  afterAll(async () => {
    cluster?.dispose()
    await lab?.close()
  })

  it('comes in its time when the clock is set back meanwhile', async () => {
    const started = performance.now()
    const { end, stdout } = await runOn(
      cluster,
      'n1',
      {
        ...{ id: newId(), timeoutSeconds: 3, graceSeconds: 0.2 },
        command:
          'perl -e "print time, qq(\\n)"; while [ ! -e "$HOME/off" ]; do sleep 0.05; done; perl -e "print time, qq(\\n)"; sleep 74600',
      },
      { onOutput: () => writeFileSync(off(), '-7200') },
    )
    expect(end).toMatchObject({ kind: 'exit', how: 'timeout' })
    expect(performance.now() - started).toBeGreaterThan(2_000)
    expect(performance.now() - started).toBeLessThan(30_000)
    const [before, after] = stdout.trim().split('\n').map(Number)
    expect(after! - before!).toBeLessThan(-7000)
  })

  it('does not come early when the clock is set forward meanwhile', async () => {
    const { end } = await runOn(
      cluster,
      'n1',
      {
        ...{ id: newId(), timeoutSeconds: 60 },
        command: 'echo up; while [ ! -e "$HOME/off" ]; do sleep 0.05; done; sleep 4; exit 3',
      },
      { onOutput: () => writeFileSync(off(), '7200') },
    )
    expect(end).toMatchObject({ kind: 'exit', how: 'exit', code: 3 })
  })
})
