import { describe, expect, it } from 'vitest'
import { sshArguments } from '../../../src/nodes/ssh/ssh-arguments.ts'
import {
  classifySshFailure,
  failureError,
  sshError,
  sshFailureOf,
} from '../../../src/nodes/ssh/ssh-errors.ts'

const settings = { knownHosts: '/state/known hosts' }
const target = { id: 'n', host: 'builder.local' }

describe('the arguments of ssh', () => {
  it('disable passwords and store new host keys in our own file', () => {
    const args = sshArguments(target, settings).join(' ')
    expect(args).toContain('BatchMode=yes')
    expect(args).toContain('StrictHostKeyChecking=accept-new')
    expect(args).toContain('UserKnownHostsFile="/state/known hosts" ~/.ssh/known_hosts')
    expect(args).toContain('ServerAliveInterval=5')
  })

  it('connect to the resolved address under the configured name', () => {
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
  ])('reject %j', change => {
    expect(() => sshArguments({ ...target, ...change }, settings)).toThrow(
      / an invalid (?:host|address|user|jump host|port|identity)/,
    )
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

  it('is retryable only for network failures', () => {
    expect(failureError(target, 'unreachable').retryable).toBe(true)
    expect(failureError(target, 'auth-failed').retryable).toBe(false)
    expect(failureError(target, 'host-key-changed').retryable).toBe(false)
  })

  it('shows how to remove a changed host key', () => {
    const error = sshError(target, 'REMOTE HOST IDENTIFICATION HAS CHANGED!', '/state/known_hosts')
    expect(error.hint).toContain("ssh-keygen -f /state/known_hosts -R 'builder.local'")
    expect(sshFailureOf(error)).toBe('host-key-changed')
  })
})
