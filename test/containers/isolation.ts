import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/jobs/ids.ts'
import { exitOf } from '../integration/providers/provider-contract.ts'
import { type TestEngine, TOOLS } from '../support/containers/engines.ts'
import { createHarness, type Harness } from '../support/providers.ts'

const signal = (): AbortSignal => AbortSignal.timeout(60_000)
const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join('')
const COUNT = 'for i in $(seq 1 40); do echo line $i; sleep 0.1; done'

/** What a container keeps from its job, from those who look at it, and from the end of its engine. */
export const describeIsolation = (engine: TestEngine | undefined, missing: string | undefined): void => {
  describe.skipIf(missing !== undefined)('a container of any engine', () => {
    // The body runs for skipped tests, too.
    if (engine === undefined) return
    let harness: Harness
    beforeAll(async () => {
      harness = await createHarness({
        module: 'providers/container/container-provider.js',
        factory: 'createContainerProvider',
        options: { host: engine.host, image: TOOLS, graceSeconds: 1 },
      })
    })
    afterAll(() => harness?.dispose())

    it('has nothing but what the job was given', async () => {
      const script = [
        'id -u; id -g',
        "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status",
        'ls /sys/class/net | tr "\\n" " "; echo',
        'for d in / /usr /etc /var; do touch $d/x 2>/dev/null && echo "$d is writable"; done',
        'for s in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock; do [ -e $s ] && echo "$s is there"; done',
        'cat /proc/1/comm; touch /tmp/a "$HOME/b"; cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max',
        'mount | grep -c " /proc/.*proc " ; (: > /proc/sys/kernel/core_pattern) 2>/dev/null && echo "core_pattern is writable"',
        'dd if=/dev/zero of=/work/big bs=1M count=64 2>&1 | grep -o "No space left"; exit 0',
      ].join('\n')
      const { outcome, sink } = await harness.run({ task: script, resources: { disk: '16M', cpu: 0.5 } })
      expect(exitOf(outcome), sink.text()).toMatchObject({ code: 0 })
      const zero = '0000000000000000'
      const lines = sink.text().trim().split('\n')
      expect(lines.slice(0, 9).map(line => line.replace(/\s+/, ' '))).toEqual([
        ...['1000', '1000', `CapInh: ${zero}`, `CapPrm: ${zero}`, `CapEff: ${zero}`, `CapBnd: ${zero}`],
        ...[`CapAmb: ${zero}`, 'NoNewPrivs: 1', 'Seccomp: 2'],
      ])
      expect(lines[9]!.trim()).toBe('lo')
      expect(lines[10]).toMatch(/init|catatonit/)
      expect(lines[11]).toBe('512')
      expect(lines.at(-1)).toBe('No space left')
      expect(sink.text()).not.toMatch(/writable|is there/)
      expect(exitOf(outcome).isolation).toEqual(
        expect.arrayContaining([
          'no network',
          'no capabilities',
          'read-only root',
          'kernel shared with the engine',
        ]),
      )
    })

    it('shows no secret and no command to those who inspect it', async () => {
      const secret = `only-on-the-channel-${newId()}`
      const mark = newId()
      const launched = await harness.launch(
        { task: `echo go; sleep 60; : ${mark}`, env: { PLAIN: mark } },
        { secrets: { TOKEN: secret } },
      )
      const hasBegun = (sink: typeof launched.sink): boolean => sink.text().includes('go')
      await launched.sink.until(hasBegun, 'the command has started')
      const inspect = () => engine.api('GET', `/v1.40/containers/deputy-${launched.machine.id}/json`)
      const before = (await inspect()).text
      launched.detach()
      await launched.outcome
      const again = harness.reattach(launched, 0)
      await again.sink.until(hasBegun, 'it is followed again, through an exec')
      const { text } = await inspect()
      const { ExecIDs } = JSON.parse(text) as { ExecIDs: string[] }
      const execs = await Promise.all(ExecIDs.map(id => engine.api('GET', `/v1.40/exec/${id}/json`)))
      const shown = [before, text, ...execs.map(one => one.text)].join('')
      expect(ExecIDs.length).toBeGreaterThan(0)
      expect(shown).not.toContain(secret)
      expect(shown).not.toContain(mark)
      again.stop('cancel')
      await again.outcome
      await harness.provider.destroy(launched.machine, signal())
    })

    it('reports a job that the kernel ended for lack of memory', async () => {
      const { outcome } = await harness.run({
        task: `python3 -c 'x = bytearray(300 * 1024 * 1024)'`,
        resources: { memory: '64M' },
      })
      expect(exitOf(outcome)).toMatchObject({ limitsHit: [expect.stringContaining('memory')] })
    })

    it('keeps its job through kill -9 of the engine, with exact output', async () => {
      const launched = await harness.launch({ task: COUNT })
      await launched.sink.until(sink => sink.text().includes('line 3\n'), 'three lines')
      await engine.kill()
      await engine.start()
      expect(exitOf(await launched.outcome).code).toBe(0)
      expect(launched.sink.text()).toBe(LINES)
      await harness.provider.destroy(launched.machine, signal())
    })
  })
}
