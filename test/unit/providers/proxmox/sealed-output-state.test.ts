import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Job } from '../../../../src/jobs/job.ts'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import type { AttachRequest, CommandSpec, Run, SinkBatch } from '../../../../src/ports.ts'
import { createOutputReceiver } from '../../../../src/providers/proxmox/output-receiver.ts'
import { seal, unseal } from '../../../../src/providers/proxmox/seal.ts'
import { createSealedOutputState } from '../../../../src/providers/proxmox/sealed-output-state.ts'
import type { Details } from '../../../../src/providers/proxmox/vm-details.ts'

const schema = z.object({ secret: z.string() })
const TOKEN = 'token-of-the-machine-0123456789'

describe('what is sealed', () => {
  it('is opened by the same token alone, and only unchanged', () => {
    const text = seal(TOKEN, { secret: 'hunter2' })
    expect(text).not.toContain(Buffer.from('hunter2').toString('base64').slice(0, 8))
    expect(unseal(TOKEN, text, schema)).toEqual({ secret: 'hunter2' })
    expect(() => unseal(`${TOKEN}x`, text, schema)).toThrow()
    const bytes = Buffer.from(text, 'base64')
    bytes[bytes.length - 1]! ^= 1
    expect(() => unseal(TOKEN, text, z.object({ other: z.string() }))).toThrow()
    expect(() => unseal(TOKEN, bytes.toString('base64'), schema)).toThrow()
  })

  it('is another text each time', () => {
    expect(seal(TOKEN, 'x')).not.toBe(seal(TOKEN, 'x'))
  })
})

/** A job whose daemon may die at any moment: only what was written is there for the next one. */
const createDisk = (command: Pick<CommandSpec, 'secrets' | 'format'>) => {
  let details: Partial<Details> = {}
  let position = 0
  let outputBytes = 0
  const chunks: SinkBatch['chunks'][number][] = []
  /** Writes that are left until the power goes. */
  let left = Number.POSITIVE_INFINITY
  const write = (work: () => void): Promise<void> => {
    if (left <= 0) return new Promise(() => {})
    left--
    work()
    return Promise.resolve()
  }

  const learn = (more: Readonly<Record<string, unknown>>) => {
    details = JSON.parse(JSON.stringify({ ...details, ...more }))
  }

  const open = ({ fresh = false, spoken = true } = {}) => {
    const sink = {
      get position() {
        return position
      },
      started: async () => {},
      heartbeat: () => {},
      write: (batch: SinkBatch) =>
        write(() => {
          position = batch.position
          outputBytes = batch.outputBytes
          chunks.push(...batch.chunks)
          if (batch.remember) learn(batch.remember)
        }),
    }
    const run = {
      job: { id: 'j' } as Job,
      manifest: parseManifest({ task: 'x' }),
      machine: { id: 'm', runtime: 'proxmox', jobId: 'j', details: {} },
      sink,
      stop: new AbortController().signal,
      detach: new AbortController().signal,
      remember: (more: Record<string, unknown>) => write(() => learn(more)),
    } satisfies AttachRequest
    const reading = createSealedOutputState({
      run,
      details: details as Details,
      fresh: fresh ? { ...run, command: { ...command } as Run['command'] } : undefined,
      token: () => (spoken ? TOKEN : undefined),
    })
    const outputReceiver = createOutputReceiver({
      sink,
      outputBytes,
      read: reading.open,
      keep: reading.keep,
      now: () => 1,
    })
    return {
      outputReceiver,
      begin: () => run.remember({ started: { jobId: 'j', at: 1 }, ...reading.sealed() }),
    }
  }

  return {
    open,
    diesAfter: (writes: number) => {
      left = writes
    },
    revive: () => {
      left = Number.POSITIVE_INFINITY
    },
    position: () => position,
    onDisk: () => JSON.stringify(details),
    text: (stream: 'stdout' | 'stderr') =>
      Buffer.concat(chunks.filter(one => one.stream === stream).map(one => Buffer.from(one.data))).toString(),
  }
}

const tick = () => new Promise(resolve => setImmediate(resolve))

describe('the output of a job whose daemon is killed', () => {
  it('is complete and free of secrets, wherever the frames end and whenever it dies', async () => {
    const secret = 'abcabd'
    const word = fc.constantFrom('a', 'b', 'c', 'ab', 'abc', 'abca', secret, ' ', '\n', 'xyz')
    const frame = fc.record({
      stream: fc.constantFrom('stdout' as const, 'stderr' as const),
      words: fc.array(word, { minLength: 1, maxLength: 6 }),
      /** The writes of this frame that reach the disk before the daemon dies; undefined: it lives. */
      dies: fc.option(fc.nat(1), { nil: undefined }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), async frames => {
        const disk = createDisk({ secrets: { S: secret }, format: 'text' })
        let daemon = disk.open({ fresh: true })
        await daemon.begin()
        const sent = { stdout: '', stderr: '' }
        let offset = 0
        for (const { stream, words, dies } of frames) {
          const data = Buffer.from(words.join(''))
          sent[stream] += data.toString()
          if (dies !== undefined) {
            disk.diesAfter(dies)
            void daemon.outputReceiver.take({ stream, offset, data })
            await tick()
            disk.revive()
            daemon = disk.open()
          }
          // The machine sends again what nobody has acknowledged.
          await daemon.outputReceiver.take({ stream, offset, data })
          offset += data.length
          expect(disk.position()).toBe(offset)
        }
        await daemon.outputReceiver.end()
        for (const stream of ['stdout', 'stderr'] as const)
          expect(disk.text(stream)).toBe(sent[stream].replaceAll(secret, '[redacted]'))
      }),
      { numRuns: 300 },
    )
  })

  it('is not let through before it is known what is secret', async () => {
    const disk = createDisk({ secrets: { S: 'hunter2' }, format: 'text' })
    await disk.open({ fresh: true }).begin()
    expect(disk.onDisk()).not.toContain('hunter2')
    const mute = disk.open({ spoken: false })
    await expect(
      mute.outputReceiver.take({ stream: 'stdout', offset: 0, data: Buffer.from('hunter2') }),
    ).rejects.toMatchObject({ code: 'unavailable' })
    await mute.outputReceiver.end()
    expect(disk.text('stdout')).toBe('')
  })

  it('is not doubled when it has no positions, as that of an older runner', async () => {
    const disk = createDisk({ secrets: { S: 'hunter2hunter2' }, format: 'text' })
    const first = disk.open({ fresh: true })
    await first.begin()
    await first.outputReceiver.takeText({ output: 'go hunt' })
    await first.outputReceiver.takeText({ output: 'ing\n' })
    const second = disk.open()
    await second.outputReceiver.takeText({ output: 'more\n' })
    expect(disk.text('stdout')).toBe('go hunting\nmore\n')
  })

  it('is read on in the form of the agent, from the middle of a line', async () => {
    const disk = createDisk({ secrets: {}, format: 'claude-stream-json' })
    const line = Buffer.from(
      `${JSON.stringify({ type: 'assistant', message: { content: [{ type: 'text', text: 'half and half' }] } })}\n`,
    )
    const first = disk.open({ fresh: true })
    await first.begin()
    await first.outputReceiver.take({ stream: 'stdout', offset: 0, data: line.subarray(0, 40) })
    const second = disk.open()
    await second.outputReceiver.take({ stream: 'stdout', offset: 40, data: line.subarray(40) })
    await second.outputReceiver.end()
    expect(disk.text('stdout')).toBe('half and half\n')
  })
})
