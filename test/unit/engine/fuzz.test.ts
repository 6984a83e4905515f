import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { removeDirectory, startEngine } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

/** What people and models send by mistake or on purpose. */
const hostile = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '$(id)',
    '`id`',
    '; rm -rf /',
    '--help',
    '-oProxyCommand=x',
    '\n',
    '"',
    "'",
    '\\',
    '../../etc/passwd',
    '\0',
    '{task}',
    '%s',
    '💥',
  ),
)
const junk = fc.jsonValue({ maxDepth: 3 })
const mostly = <T>(good: fc.Arbitrary<T>, ...bad: fc.Arbitrary<unknown>[]) =>
  fc.oneof(
    { weight: 12, arbitrary: good as fc.Arbitrary<unknown> },
    ...[...bad, junk].map(arbitrary => ({ weight: 1, arbitrary })),
  )
const manifest = fc.record(
  {
    task: mostly(hostile),
    agentType: mostly(fc.constantFrom('script', 'custom', 'preset'), fc.constantFrom('claude', 'x')),
    agent: mostly(
      fc.record({ command: fc.oneof(hostile, fc.array(hostile, { minLength: 1, maxLength: 4 })) }),
    ),
    files: mostly(
      fc.array(fc.record({ path: fc.constantFrom('a', 'b/c', '/tmp/x'), text: hostile }), { maxLength: 3 }),
      fc.array(fc.record({ path: hostile, text: hostile }), { maxLength: 3 }),
    ),
    env: mostly(
      fc.dictionary(fc.constantFrom('A', 'PATH', '__proto__', 'constructor'), hostile),
      fc.dictionary(hostile, hostile),
    ),
    labels: mostly(fc.dictionary(fc.constantFrom('a', 'b'), hostile), fc.dictionary(hostile, hostile)),
    network: mostly(fc.constantFrom('none', 'full', ['example.org']), fc.array(hostile)),
    artifacts: mostly(fc.array(fc.constantFrom('*.log', 'dist/**')), fc.array(hostile)),
    resources: mostly(fc.constant({ cpu: 1 })),
    requires: mostly(fc.constant({ os: 'linux' })),
    priority: mostly(fc.integer({ min: -100, max: 100 })),
    idempotency_key: mostly(hostile),
  },
  { requiredKeys: ['task', 'agent'] },
)

describe('fuzzed manifests', () => {
  it('10,000 of them are rejected with a reason or run as requested, and the engine keeps running', async () => {
    const provider = createScriptedProvider('sandbox', { limit: 16, auto: true })
    const started = new Map<
      string,
      { task: string; argv: readonly string[]; command: unknown; agentType: string }
    >()
    const start = provider.start
    provider.start = run => {
      const { task, agent, agentType } = run.manifest
      started.set(run.job.id, { task, agentType, command: agent?.command, argv: run.command.argv })
      return start(run)
    }
    const preset = {
      argv: ['tool', '--ask={task}'],
      env: {},
      secrets: [],
      programs: [],
      format: 'text' as const,
    }
    const engine = await startEngine([provider], {
      config: config => {
        config.limits.queue = 1_000_000
        config.agents = { preset }
      },
    })
    let accepted = 0
    let refused = 0
    const last: string[] = []
    for (const batch of chunks(
      fc.sample(fc.oneof({ weight: 1, arbitrary: junk }, { weight: 6, arbitrary: manifest }), 10_000),
      100,
    ))
      await Promise.all(
        batch.map(async input => {
          try {
            last.push((await engine.deputy.submit(input, 'fuzz')).job_id)
            accepted += 1
          } catch (error) {
            expect(error).toBeInstanceOf(AppError)
            expect((error as AppError).httpStatus).toBeLessThan(500)
            refused += 1
          }
        }),
      )
    expect(accepted + refused).toBe(10_000)
    expect(accepted).toBeGreaterThan(100)
    for (const id of last)
      await engine.deputy.wait(id, { timeoutMs: 20_000, signal: new AbortController().signal })
    // Whatever was typed stays one argument: nothing of it became program text that nobody asked for.
    for (const { argv, task, command, agentType } of started.values()) {
      if (agentType === 'preset') expect(argv).toEqual(['tool', `--ask=${task}`])
      else if (Array.isArray(command)) expect(argv).toEqual(command)
      // What begins with a sign would be an option of bash's.
      else expect(argv).toEqual(['bash', '-c', String(command ?? task).replace(/^[-+]/, ' $&')])
    }
    const counts = await engine.store.counts()
    expect(counts.pending + counts.provisioning + counts.running).toBe(0)
    await engine.close()
    removeDirectory(engine.directory)
  }, 180_000)
})

const chunks = <T>(items: T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
