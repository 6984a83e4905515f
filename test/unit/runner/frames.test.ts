import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createFrameReader,
  encodeAnswer,
  encodeRequest,
  parseAnswer,
  parseRequest,
  versionProblem,
} from '../../../src/runner/codec.ts'
import {
  type Answer,
  answerSchema,
  type Request,
  requestSchema,
  type ShimState,
} from '../../../src/runner/frames.ts'
import type { RunExit } from '../../../src/runner/run-result.ts'
import { shellJoin, splitWords } from '../../../src/runner/shell-words.ts'

const start: Request = {
  kind: 'start',
  run: 'm1.j1',
  from: 0,
  workspace: 'm1',
  timeoutSeconds: 60,
  graceTenths: 50,
  keepHead: 1000,
  keepTail: 2000,
  context: 'c2VhbGVk',
  env: ['TOKEN=it\'s "x"', 'EMPTY='],
  argv: ['bash', '-c', 'echo one\necho two'],
  shim: {
    ...{ dir: '/runs/m1/j1', network: ['example.com'], programs: [], secrets: { TOKEN: "it's" } },
    ...{ format: 'text', timeoutSeconds: 59.5, lifecycle: 'ephemeral', continues: false },
    ...{ inputs: [{ path: '/blob', into: 'workspace' }], patchBase: '/blob', wantsPatch: true },
    ...{ givenFiles: [], artifacts: ['*.log'] },
    limits: { memory: 1, disk: 2, cpu: 0.5, processes: 4 },
    keep: { head: 1000, tail: 2000, artifactFiles: 3, artifactBytes: 4, patchBytes: 5 },
  },
}

const state: ShimState = {
  ...{ id: 's1', pid: 7, uid: null, capacity: 16, build: 'b1', retiring: false },
  machines: [{ workspace: 'm1', run: 'm1.j1' }],
}

const REQUESTS: readonly Request[] = [
  { kind: 'hello', version: 1, oldest: 1, mark: 'deputy-0', owner: 'own' },
  start,
  { kind: 'follow', run: 'm1.j1', from: 17 },
  { kind: 'stop', run: 'm1.j1', graceTenths: 5, why: 'timeout' },
  { kind: 'context', run: 'm1.j1' },
  { kind: 'bar', run: 'm1.j1' },
  { kind: 'release', workspace: 'm1' },
  { kind: 'workspaces' },
  { kind: 'files', workspace: 'm1' },
  { kind: 'read', workspace: 'm1', argv: ["./it's", './a b'] },
  {
    ...{ kind: 'open', workspace: 'm1', session: 's1', size: { columns: 90, rows: 25 } },
    ...{ env: ['TERM=xterm'], argv: ['sh', '-c', "it's"] },
  },
  { kind: 'input', session: 's1', bytes: 0 },
  { kind: 'eof', session: 's1' },
  { kind: 'resize', session: 's1', size: { columns: 100, rows: 40 } },
  { kind: 'retire' },
]

const ERROR = { code: 'unavailable', message: 'the disk is full', retryable: true } as const

const RESULT: RunExit = {
  ...{ code: 143, signal: 'SIGTERM', stopped: 'timeout', startedAt: 1001, endedAt: 2002, outputBytes: 3 },
  ...{
    artifacts: [{ path: 'a', sha256: 'ab', size: 1, file: 'files/0' }],
    skippedArtifacts: [],
    patch: null,
  },
  ...{ usage: null, isolation: ['namespaces'], limitsHit: [], agentError: null, phases: { run: 1 } },
}

const ANSWERS: readonly Answer[] = [
  { kind: 'hello', version: 1, oldest: 1, boot: '-', mark: 'deputy-0', shim: state },
  { kind: 'started', run: 'm1.j1', fresh: true, at: 1700000000000 },
  { kind: 'output', run: 'm1.j1', stream: 'stderr', offset: 3, bytes: 0, at: 1700000000000 },
  { kind: 'progress', run: 'm1.j1', text: 'half done' },
  { kind: 'dropped', run: 'm1.j1', offset: 3, count: 9 },
  { kind: 'heartbeat', run: 'm1.j1' },
  { kind: 'exit', run: 'm1.j1', code: 143, how: 'timeout', startedAt: 1, endedAt: 2, result: RESULT },
  { kind: 'logged', run: 'm1.j1' },
  { kind: 'refused', run: 'm1.j1', fault: true, reason: ERROR.message, error: ERROR },
  { kind: 'lost', run: 'm1.j1', reason: ERROR.message, error: ERROR },
  { kind: 'superseded', run: 'm1.j1' },
  { kind: 'stopped', run: 'm1.j1', left: [4, 5] },
  { kind: 'context', run: 'm1.j1', context: 'c2VhbGVk' },
  { kind: 'released', workspace: 'm1', left: [] },
  { kind: 'workspace', workspace: 'm1', createdAt: 7 },
  { kind: 'files', workspace: 'm1' },
  { kind: 'tar', workspace: 'm1' },
  { kind: 'opened', session: 's1' },
  { kind: 'ended', session: 's1', code: 9 },
  { kind: 'leaving' },
  { kind: 'failed', reason: "it's version 9" },
  { kind: 'end' },
]

const kindsOf = (schema: typeof requestSchema | typeof answerSchema): string[] =>
  schema.options.map(option => option.shape.kind.value)

const readAll = (
  stream: Buffer,
  cuts: readonly number[] = [],
  mark?: string,
): (Answer & { data: string })[] => {
  const frames: (Answer & { data: string })[] = []
  const read = createFrameReader({
    parse: parseAnswer,
    ...(mark !== undefined && { mark }),
    onFrame: (frame, data) => frames.push({ ...frame, data: data.toString('latin1') }),
  })
  const ends = [0, ...cuts.map(cut => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length]
  for (let i = 1; i < ends.length; i++) read(stream.subarray(ends[i - 1], ends[i]))
  return frames
}

describe('the frames of the runner protocol', () => {
  it('look like this on the wire', () => {
    expect([...REQUESTS.map(encodeRequest), ...ANSWERS.map(encodeAnswer)].join('')).toMatchSnapshot()
  })

  it('are all in that snapshot', () => {
    expect(REQUESTS.map(({ kind }) => kind)).toEqual(kindsOf(requestSchema))
    expect(ANSWERS.map(({ kind }) => kind)).toEqual(kindsOf(answerSchema))
  })

  it('are read as they were written', () => {
    const requests: Request[] = []
    const read = createFrameReader({ parse: parseRequest, onFrame: frame => requests.push(frame) })
    read(Buffer.from(REQUESTS.map(encodeRequest).join('')))
    expect(requests).toEqual(REQUESTS)
    expect(readAll(Buffer.from(ANSWERS.map(encodeAnswer).join('')))).toEqual(
      ANSWERS.map(answer => ({ ...answer, data: '' })),
    )
  })

  it('may have no variables', () => {
    const requests: Request[] = []
    const read = createFrameReader({ parse: parseRequest, onFrame: frame => requests.push(frame) })
    read(Buffer.from(encodeRequest({ ...start, env: [] })))
    expect(requests).toEqual([{ ...start, env: [] }])
  })

  it('begin with the hello of this request, whatever a login shell prints before it', () => {
    const noise = "Welcome! it's\nhello version=1 oldest=1 boot=- mark=other\nend\n$ "
    const stream = `${noise}${encodeAnswer(ANSWERS[0]!).replaceAll("'", '')}end\n`
    expect(readAll(Buffer.from(stream), [], 'deputy-0').map(({ kind }) => kind)).toEqual(['hello', 'end'])
  })

  it('leave out kinds and keys of a newer version, with the bytes that belong to them', () => {
    const stream = 'colour run=a bytes=4\nend\nheartbeat run=a mood=good\nend\n'
    expect(readAll(Buffer.from(stream)).map(({ kind }) => kind)).toEqual(['heartbeat', 'end'])
  })

  it('carry output that looks like frames, piece by piece with its offset', () => {
    const stream = Buffer.from('output run=a stream=stdout offset=7 bytes=8\nend\nend\nend\n')
    const frames = readAll(stream, [stream.length - 6])
    expect(frames.map(frame => [frame.kind, 'offset' in frame ? frame.offset : null, frame.data])).toEqual([
      ['output', 7, 'end\nen'],
      ['output', 13, 'd\n'],
      ['end', null, ''],
    ])
  })

  it('give the rest of the channel to a tar', () => {
    const frames = readAll(Buffer.from('tar workspace=m bytes=rest\nend\nx'), [29])
    expect(frames.every(({ kind }) => kind === 'tar')).toBe(true)
    expect(frames.map(({ data }) => data).join('')).toBe('end\nx')
  })

  it.each([
    'exit run=a code=-1 how=exit startedAt=0 endedAt=0\n',
    'exit run=a\n',
    'started run=../../etc fresh=1\n',
    'output run=a stream=stdout offset=0 bytes=1e99\n',
    'exit run=a code=0 how=exit startedAt=0 endedAt=0 result={\n',
    'exit run=a code=0 how=exit startedAt=0 endedAt=0 result={"code":0}\n',
  ])('are refused when they cannot be read: %j', line => {
    expect(() => readAll(Buffer.from(line))).toThrow('cannot be read')
  })

  it.each([
    { ...start, run: '../x' },
    { ...start, run: "x';touch y;'" },
    { ...start, env: ['A B=c'] },
    { ...start, argv: ['a\0b'] },
    { ...start, context: "'" },
  ])('are not sent with values that could become something else', request => {
    expect(() => encodeRequest(request)).toThrow('cannot be sent')
  })

  it('are the same however the stream is cut', () => {
    const piece = fc.tuple(
      fc.constantFrom('stdout', 'stderr'),
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
    )
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        (pieces, cuts) => {
          const stream = Buffer.concat([
            ...pieces.flatMap(([name, data]) => [
              Buffer.from(`output run=a stream=${name} offset=0 bytes=${data.length}\n`),
              Buffer.from(data),
            ]),
            Buffer.from(`lost run=a reason='it'\\''s\ngone'\n`),
          ])
          const frames = readAll(stream, cuts)
          for (const name of ['stdout', 'stderr'])
            expect(
              frames.flatMap(f => (f.kind === 'output' && f.stream === name ? [f.data] : [])).join(''),
            ).toBe(
              pieces
                .flatMap(([of, data]) => (of === name ? [Buffer.from(data).toString('latin1')] : []))
                .join(''),
            )
          expect(frames.at(-1)).toMatchObject({ kind: 'lost', reason: "it's\ngone" })
        },
      ),
    )
  })

  it('never make the reader fail in another way than by a sentence', () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom(
        'exit',
        'output',
        'run=a',
        'bytes=3',
        'offset=1',
        "'",
        '\n',
        ' ',
        '--',
        '=',
        '__proto__=1',
      ),
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 20 }), words => {
        try {
          readAll(Buffer.from(words.join(' ')))
        } catch (error) {
          expect((error as Error).message).toContain('cannot be read')
        }
      }),
    )
  })
})

describe('words for a shell', () => {
  it('are read back as they were', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), words => {
        expect(splitWords(shellJoin(words))).toEqual(words)
      }),
    )
  })

  it('arrive in a shell as they were', () => {
    const noNul = fc.string({ unit: 'binary' }).filter(text => !text.includes('\0'))
    fc.assert(
      fc.property(fc.array(noNul, { minLength: 1 }), words => {
        const { stdout } = spawnSync('sh', { input: `printf '%s\\0' ${shellJoin(words)}`, encoding: 'utf8' })
        expect(stdout).toBe(words.map(word => `${Buffer.from(word).toString()}\0`).join(''))
      }),
      { numRuns: 30 },
    )
  })
})

describe('two versions of the protocol', () => {
  it.each([
    [{ version: 1, oldest: 1 }, undefined],
    [{ version: 5, oldest: 1 }, undefined],
    [{ version: 5, oldest: 2 }, 'upgrade the daemon'],
    [{ version: 0, oldest: 0 }, 'upgrade the runner'],
  ])('%j: %s', (theirs, problem) => {
    const said = versionProblem(theirs)
    if (problem === undefined) expect(said).toBeUndefined()
    else expect(said).toContain(problem)
  })
})
