import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFrameReader, type Frame } from '../../../src/cluster/remote/frames.ts'
import { exportLines, shellJoin, shellQuote } from '../../../src/cluster/remote/quote.ts'
import { sshArguments } from '../../../src/cluster/ssh/arguments.ts'
import { classifySshFailure, failureError, sshError, sshFailureOf } from '../../../src/cluster/ssh/errors.ts'

const settings = { knownHosts: '/state/known hosts' }
const target = { id: 'n', host: 'builder.local' }

describe('the arguments of ssh', () => {
  it('ask for no password and take new host keys into our own file', () => {
    const args = sshArguments(target, settings).join(' ')
    expect(args).toContain('BatchMode=yes')
    expect(args).toContain('StrictHostKeyChecking=accept-new')
    expect(args).toContain('UserKnownHostsFile="/state/known hosts" ~/.ssh/known_hosts')
    expect(args).toContain('ServerAliveInterval=5')
  })

  it('connect to the address we found under the name the user gave', () => {
    const args = sshArguments({ ...target, address: '10.0.0.7', port: 2222 }, settings)
    expect(args).toContain('HostName=10.0.0.7')
    expect(args).toContain('HostKeyAlias=[builder.local]:2222')
  })

  it('let a jump host resolve the name', () => {
    const args = sshArguments({ ...target, address: '10.0.0.7', jump: 'me@bastion:2200' }, settings)
    expect(args.join(' ')).not.toContain('HostName=')
    expect(args.slice(-2)).toEqual(['-J', 'me@bastion:2200'])
  })

  it.each([
    { host: '-oProxyCommand=touch /tmp/x' },
    { user: '-oProxyCommand=x' },
    { address: '-V' },
    { jump: '-oProxyCommand=x' },
    { identity: '-oProxyCommand=x' },
    { identity: 'a\nb' },
    { port: 0 },
    { port: 1.5 },
  ])('cannot be smuggled in by %j', change => {
    expect(() => sshArguments({ ...target, ...change }, settings)).toThrow('is not one that ssh may be given')
  })
})

describe('a failure of ssh', () => {
  it.each([
    ['ssh: connect to host x port 22: Connection refused', 'unreachable'],
    ['ssh: connect to host x port 22: No route to host', 'unreachable'],
    ['ssh: connect to host x port 22: Connection timed out', 'timed-out'],
    ['Timeout, server x not responding.', 'timed-out'],
    ['ssh: Could not resolve hostname x: Name or service not known', 'unresolved'],
    ['root@x: Permission denied (publickey).', 'auth-failed'],
    [
      '@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.',
      'host-key-changed',
    ],
    [
      'No ED25519 host key is known for x and you have requested strict checking.\nHost key verification failed.',
      'host-key-unknown',
    ],
    ['mux_client_request_session: session request failed: Session open refused by peer', 'busy'],
    ['', 'unreachable'],
  ])('%j is %s', (stderr, failure) => expect(classifySshFailure(stderr)).toBe(failure))

  it('is worth another try only when the network is to blame', () => {
    expect(failureError(target, 'unreachable').retryable).toBe(true)
    expect(failureError(target, 'auth-failed').retryable).toBe(false)
    expect(failureError(target, 'host-key-changed').retryable).toBe(false)
  })

  it('tells what to do about a changed host key', () => {
    const error = sshError(target, 'REMOTE HOST IDENTIFICATION HAS CHANGED!', '/state/known_hosts')
    expect(error.hint).toContain("ssh-keygen -f /state/known_hosts -R 'builder.local'")
    expect(sshFailureOf(error)).toBe('host-key-changed')
  })
})

describe('the frames of a follower', () => {
  const read = (pieces: Buffer[]): Frame[] => {
    const frames: Frame[] = []
    const reader = createFrameReader('mark', frame => frames.push(frame))
    for (const piece of pieces) reader(piece)
    return frames
  }

  it('begin after the mark, whatever a login shell prints before it', () => {
    const frames = read([Buffer.from('Welcome!\nx 0 exit 0 0\nmark\ns 1\nx 3 timeout 5 9\n')])
    expect(frames).toEqual([
      { kind: 'started', fresh: true },
      { kind: 'ended', code: 3, how: 'timeout', from: 5, to: 9 },
    ])
  })

  it('carry output that looks like frames', () => {
    const frames = read([Buffer.from('mark\no 12\nx 0 exit 0 0x 7 exit 0 0\n')])
    expect(frames).toEqual([
      { kind: 'output', stream: 'stdout', data: Buffer.from('x 0 exit 0 0') },
      { kind: 'ended', code: 7, how: 'exit', from: 0, to: 0 },
    ])
  })

  it('are the same however the stream is cut', () => {
    const piece = fc.tuple(fc.constantFrom('o', 'e'), fc.uint8Array({ minLength: 1, maxLength: 40 }))
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 10 }),
        fc.array(fc.nat(200), { maxLength: 12 }),
        (pieces, cuts) => {
          const stream = Buffer.concat([
            Buffer.from('noise\nmark\n'),
            ...pieces.flatMap(([kind, data]) => [Buffer.from(`${kind} ${data.length}\n`), Buffer.from(data)]),
            Buffer.from('x 0 exit 0 0\n'),
          ])
          const sorted = [0, ...cuts.map(cut => cut % stream.length).sort((a, b) => a - b), stream.length]
          const frames = read(sorted.slice(1).map((end, i) => stream.subarray(sorted[i]!, end)))
          const bytes = (stream: string) =>
            Buffer.concat(
              frames.flatMap(frame =>
                frame.kind === 'output' && frame.stream === stream ? [frame.data] : [],
              ),
            )
          const expected = (kind: string) =>
            Buffer.concat(pieces.flatMap(([k, data]) => (k === kind ? [Buffer.from(data)] : [])))
          expect(bytes('stdout')).toEqual(expected('o'))
          expect(bytes('stderr')).toEqual(expected('e'))
          expect(frames.at(-1)).toMatchObject({ kind: 'ended', code: 0 })
        },
      ),
    )
  })
})

describe('words for a shell', () => {
  it('stay words whatever is in them', () => {
    expect(shellQuote("it's")).toBe(`'it'\\''s'`)
    expect(shellJoin(['a b', '$(x)', ''])).toBe(`'a b' '$(x)' ''`)
  })

  it('leave out names that are no variables', () => {
    expect(exportLines({ A: '1', 'B; rm -rf /': 'x', _c: "'" })).toBe(`export A='1'\nexport _c=''\\'''`)
  })
})
