import { describe, expect, it } from 'vitest'
import {
  errorFromResponse,
  errorFromTask,
  proxmoxDetails,
  UncertainError,
} from '../../../src/proxmox/proxmox-errors.ts'

const answer = (status: number, body: unknown, reason = '') => ({
  status,
  reason,
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
})
const GET = { method: 'GET', path: '/x' }
const POST = { method: 'POST', path: '/x' }

describe('answers of Proxmox VE', () => {
  it('keeps the message of every parameter of a 400', () => {
    const error = errorFromResponse(
      POST,
      answer(400, {
        data: null,
        message: 'Parameter verification failed.\n',
        errors: { vmid: 'invalid format - x\n' },
      }),
    )
    expect(error.code).toBe('invalid')
    expect(error.message).toContain('vmid: invalid format - x')
    expect(proxmoxDetails(error)).toMatchObject({
      kind: 'parameters',
      status: 400,
      errors: { vmid: 'invalid format - x\n' },
    })
  })

  it('reads the reason phrase when the body is empty', () => {
    const error = errorFromResponse(GET, answer(401, '', 'Authentication failed!'))
    expect(error).toMatchObject({ code: 'unauthorized', retryable: false })
    expect(error.message).toContain('Authentication failed!')
    expect(
      errorFromResponse(GET, answer(500, { data: null }, "can't lock file '/x' - got timeout")).message,
    ).toContain("can't lock file")
  })

  it('surfaces path and privilege of a 403 verbatim', () => {
    const error = errorFromResponse(
      POST,
      answer(403, {
        data: null,
        message: 'Permission check failed (/storage/local, Datastore.AllocateSpace)\n',
      }),
    )
    expect(error.code).toBe('denied')
    expect(error.message).toContain('Permission check failed (/storage/local, Datastore.AllocateSpace)')
    expect(proxmoxDetails(error)).toMatchObject({
      aclPath: '/storage/local',
      privileges: ['Datastore.AllocateSpace'],
    })
  })

  it.each([
    [
      "Permission check failed (URI '/access/password' not available with API token, need proper ticket.\n)",
      403,
    ],
    ['Permission check failed (user != root@pam)', 403],
    ["only root can set 'args' config", 500],
    ['Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)', 403],
  ])('does not take a refusal for want of root for one of a path: %s', (message, status) => {
    const error = errorFromResponse(POST, answer(status, { data: null, message: `${message}\n` }))
    expect(error.code).toBe('denied')
    expect(proxmoxDetails(error)?.kind).toMatch(/^(root|ticket)_only$/)
    expect(proxmoxDetails(error)?.aclPath).toBeUndefined()
    expect(error.hint).toContain('pvesh create /x')
  })

  it('survives a 403 that names nothing', () => {
    const error = errorFromResponse(POST, answer(403, { data: null, message: 'Permission check failed\n' }))
    expect(proxmoxDetails(error)).toMatchObject({ kind: 'permission' })
    expect(proxmoxDetails(error)?.aclPath).toBeUndefined()
  })

  it.each([
    ["Configuration file 'nodes/pve1/qemu-server/555.conf' does not exist", 'missing', 'not_found', false],
    ["hostname lookup 'x' failed - failed to get address info", 'missing', 'not_found', false],
    ["storage 'seeds' is not available on node 'pve2'", 'elsewhere', 'not_found', false],
    ['unable to create VM 100: config file already exists', 'exists', 'conflict', false],
    ["can't lock file '/var/lock/qemu-server/lock-208.conf' - got timeout", 'locked', 'unavailable', true],
    ["cfs-lock 'storage-x' error: got lock request timeout", 'locked', 'unavailable', true],
    ['VM is locked (clone)', 'stale_lock', 'conflict', true],
    ['checksum mismatch (file change by other user?)', 'changed', 'conflict', true],
    ['VM 100 is running - destroy failed', 'running', 'conflict', false],
    ['QEMU guest agent is not running', 'agent_down', 'unavailable', true],
    ['No QEMU guest agent configured', 'agent_off', 'unsupported', false],
    ['no space left on device', 'no_space', 'unavailable', true],
    ["unable to find command 'sendmail'", 'server', 'internal', false],
    ['something else entirely', 'server', 'internal', false],
  ])('reads "%s" as %s', (message, kind, code, retryable) => {
    const error = errorFromResponse(POST, answer(500, { data: null, message: `${message}\n` }))
    expect(proxmoxDetails(error)?.kind).toBe(kind)
    expect(error).toMatchObject({ code, retryable })
    expect(error.hint).toBeTruthy()
  })

  it('takes the plain text of a 501', () => {
    const error = errorFromResponse(
      { method: 'DELETE', path: '/x' },
      answer(501, "Unexpected content for method 'DELETE'"),
    )
    expect(error).toMatchObject({ code: 'unsupported' })
    expect(error.message).toContain('Unexpected content')
  })

  it('does not quote an HTML page', () => {
    expect(
      errorFromResponse(GET, answer(502, '<html><body>x</body></html>', 'Bad Gateway')).message,
    ).toContain('Bad Gateway')
  })

  it('is uncertain about a write after 596, and not after 595 or a read', () => {
    expect(errorFromResponse(POST, answer(596, '', 'Connection timed out'))).toBeInstanceOf(UncertainError)
    expect(errorFromResponse(POST, answer(596, '')).retryable).toBe(false)
    const down = errorFromResponse(POST, answer(595, '', 'Connection refused'))
    expect(down).not.toBeInstanceOf(UncertainError)
    expect(down).toMatchObject({ code: 'unavailable', retryable: true })
    expect(errorFromResponse(GET, answer(596, '', 'Connection timed out'))).toMatchObject({
      code: 'unavailable',
      retryable: true,
    })
  })

  it('calls an unknown task missing', () => {
    const error = errorFromResponse(
      GET,
      answer(400, { message: 'Parameter verification failed.\n', errors: { upid: 'no such task' } }),
    )
    expect(error.code).toBe('not_found')
  })

  it('survives garbage', () => {
    for (const body of ['{', '[]', 'null', '{"errors":7}', '\u0000\u0001', '{"message":{}}']) {
      expect(errorFromResponse(GET, answer(500, body)).code).toBe('internal')
    }
  })
})

it('reads the exit status of a task like an answer', () => {
  const error = errorFromTask('UPID:x', 'qmclone', 'unable to create VM 100: config file already exists', [
    'line',
  ])
  expect(proxmoxDetails(error)).toMatchObject({ kind: 'exists', log: ['line'], upid: 'UPID:x' })
  expect(proxmoxDetails(errorFromTask('UPID:x', 'qmclone', 'boom', []))?.kind).toBe('task_failed')
})
