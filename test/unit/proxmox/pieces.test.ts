import { describe, expect, it } from 'vitest'
import { createAuthSession } from '../../../src/proxmox/auth-session.ts'
import { createFailover } from '../../../src/proxmox/failover.ts'
import { createKeyedSemaphore } from '../../../src/proxmox/keyed-semaphore.ts'
import { encodeMultipart } from '../../../src/proxmox/multipart.ts'
import type { Clock } from '../../../src/proxmox/proxmox-clock.ts'
import { errorFromTask, proxmoxDetails } from '../../../src/proxmox/proxmox-errors.ts'
import { pveumLines, setupLines } from '../../../src/proxmox/pveum.ts'
import { backoff, retryWhileLocked } from '../../../src/proxmox/retry.ts'
import { isUpid, parseUpid } from '../../../src/proxmox/upid.ts'

/** Sleeping takes no time but moves the clock. */
const fakeClock = (): Clock & { time: number } => {
  const clock = {
    time: 1_000_000,
    now: () => clock.time,
    sleep: async (ms: number, signal?: AbortSignal) => {
      signal?.throwIfAborted()
      clock.time += ms
    },
  }
  return clock
}

const LOCKED = () => errorFromTask('UPID', 'qmstart', "can't lock file '/var/lock/x' - got timeout", [])

describe('waiting for locks', () => {
  it('repeats until the lock is free', async () => {
    const clock = fakeClock()
    let tries = 0
    const work = async () => {
      if (++tries < 4) throw LOCKED()
      return 'done'
    }
    expect(await retryWhileLocked(work, { clock, deadline: clock.now() + 60_000 })).toBe('done')
    expect(tries).toBe(4)
  })

  it('stops at the deadline with the last error', async () => {
    const clock = fakeClock()
    const error = await retryWhileLocked(() => Promise.reject(LOCKED()), {
      clock,
      deadline: clock.now() + 5000,
    }).catch(e => e)
    expect(error.message).toContain('deadline')
    expect(proxmoxDetails(error)?.kind).toBe('locked')
    expect(clock.time).toBeLessThan(1_005_000)
  })

  it('does not repeat anything else', async () => {
    let tries = 0
    const work = async () => {
      tries++
      throw new Error('other')
    }
    await expect(
      retryWhileLocked(work, { clock: fakeClock(), deadline: Number.POSITIVE_INFINITY }),
    ).rejects.toThrow('other')
    expect(tries).toBe(1)
  })

  it('backs off by doubling, within bounds', () => {
    for (let attempt = 0; attempt < 12; attempt++) {
      const pause = backoff(attempt, { first: 100, most: 1000 })
      expect(pause).toBeGreaterThanOrEqual(Math.min(1000, 100 * 2 ** attempt) * 0.74)
      expect(pause).toBeLessThanOrEqual(1000)
    }
  })
})

describe('the limiter', () => {
  it('runs no more than the limit per key, in order, and frees the place of an aborted one', async () => {
    const limit = createKeyedSemaphore(2)
    const gates: (() => void)[] = []
    const started: number[] = []
    const job = (n: number, signal?: AbortSignal) =>
      limit(
        'a',
        () =>
          new Promise<void>(resolve => {
            started.push(n)
            gates.push(resolve)
          }),
        signal,
      )
    const abort = new AbortController()
    const jobs = [job(1), job(2), job(3, abort.signal), job(4)]
    await limit('b', async () => {})
    expect(started).toEqual([1, 2])
    const aborted = expect(jobs[2]).rejects.toThrow('enough')
    abort.abort(new Error('enough'))
    await aborted
    gates.shift()!()
    await jobs[0]
    await expect.poll(() => started).toEqual([1, 2, 4])
    for (const open of gates) open()
    await Promise.all([jobs[1], jobs[3]])
  })

  it('frees the place of one that failed', async () => {
    const limit = createKeyedSemaphore(1)
    await expect(limit('a', () => Promise.reject(new Error('x')))).rejects.toThrow('x')
    expect(await limit('a', async () => 1)).toBe(1)
  })
})

describe('fail-over', () => {
  const endpoint = (host: string) => ({ host, port: 8006, origin: `https://${host}:8006` })
  const [a, b] = [endpoint('a'), endpoint('b')]

  it('stays with what works and gives a failed host a rest', () => {
    const clock = fakeClock()
    const failover = createFailover([a, b], clock)
    expect(failover.order()).toEqual([a, b])
    failover.failed(a)
    expect(failover.order()).toEqual([b, a])
    failover.worked(b)
    clock.time += 60_000
    expect(failover.order()).toEqual([b, a])
  })

  it('still tries a resting host when it is the only one', () => {
    const failover = createFailover([a], fakeClock())
    failover.failed(a)
    expect(failover.order()).toEqual([a])
  })
})

describe('tickets', () => {
  const credentials = { kind: 'ticket', user: 'root@pam', password: () => 'pw' } as const
  const counting = () => {
    const state = { logins: 0 }
    const login = async () => ({ ticket: `PVE:${++state.logins}`, csrf: `csrf${state.logins}` })
    return { state, login }
  }

  it('logs in once for callers that come together, and again before the ticket dies', async () => {
    const clock = fakeClock()
    const { state, login } = counting()
    const session = createAuthSession(credentials, { clock, login })
    const [get, post] = await Promise.all([session.headers('GET'), session.headers('POST')])
    expect(state.logins).toBe(1)
    expect(get).toEqual({ cookie: 'PVEAuthCookie=PVE%3A1' })
    expect(post).toEqual({ cookie: 'PVEAuthCookie=PVE%3A1', csrfpreventiontoken: 'csrf1' })
    clock.time += 91 * 60_000
    await session.headers('GET')
    expect(state.logins).toBe(2)
  })

  it('allows one fresh login after a refusal, not a loop of them', async () => {
    const clock = fakeClock()
    const { state, login } = counting()
    const session = createAuthSession(credentials, { clock, login })
    await session.headers('GET')
    expect(session.refused()).toBe(true)
    await session.headers('GET')
    expect(state.logins).toBe(2)
    expect(session.refused()).toBe(false)
  })

  it('sends a token alone, without a cookie', async () => {
    const token = { kind: 'token', user: 'a@pve', tokenName: 't', id: 'a@pve!t', secret: () => 's' } as const
    const session = createAuthSession(token, {
      clock: fakeClock(),
      login: () => Promise.reject(new Error('never')),
    })
    expect(await session.headers('POST')).toEqual({ authorization: 'PVEAPIToken=a@pve!t=s' })
    expect(session.refused()).toBe(false)
  })
})

describe('task ids', () => {
  it('are taken apart', () => {
    const upid = 'UPID:pve1:0000A1B2:00C3D4E5:66F7A8B9:qmclone:9000:user@pve!token:'
    expect(parseUpid(upid)).toMatchObject({
      node: 'pve1',
      type: 'qmclone',
      id: '9000',
      user: 'user@pve',
    })
    expect(parseUpid('UPID:pve-2:0000A1B2:00C3D4E5:66F7A8B9:imgcopy::root@pam:')).toMatchObject({
      id: '',
      user: 'root@pam',
    })
  })

  it('are told from other texts', () => {
    for (const text of ['', 'UPID:', 'UPID:../x:0000A1B2:00C3D4E5:66F7A8B9:t:1:u@pam:', null, 7])
      expect(isUpid(text)).toBe(false)
    expect(() => parseUpid('x')).toThrow('"x"')
  })
})

describe('uploads', () => {
  it('put the text fields before the file and know their length', async () => {
    const file = Buffer.from('hello')
    const { headers, body } = encodeMultipart(
      { content: 'iso' },
      { filename: 'a.iso', size: 5, content: () => [file] },
    )
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    expect(headers['content-length']).toBe(String(text.length))
    expect(text.indexOf('name="content"')).toBeLessThan(text.indexOf('name="filename"'))
    expect(text).toContain('\r\nContent-Disposition: form-data; name="filename"; filename="a.iso"\r\n')
  })

  it('refuse a name that could break the header', () => {
    for (const filename of ['a".iso', 'a\r\nb.iso', '../a.iso', '', 'ä.iso']) {
      expect(() => encodeMultipart({}, { filename, size: 0, content: () => [] })).toThrow('file name')
    }
  })
})

describe('pveum lines', () => {
  const PLACE = {
    major: 9,
    template: 9000,
    pool: 'jobs',
    diskStorages: ['local-lvm'],
    seedStorage: 'seeds',
    bridge: 'vmbr0',
    user: 'deputy@pve',
    tokenId: 'deputy@pve!jobs',
  }

  it('give each rule to user and token', () => {
    const lines = pveumLines(PLACE)
    for (const path of [
      '/vms/9000',
      '/pool/jobs',
      '/storage/local-lvm',
      '/storage/seeds',
      '/sdn/zones/localnetwork/vmbr0',
    ]) {
      expect(lines.filter(line => line.startsWith(`pveum acl modify ${path} `))).toHaveLength(2)
    }
    expect(lines.join('\n')).toContain("--tokens 'deputy@pve!jobs'")
    expect(lines.join('\n')).not.toMatch(/Sys\./)
  })

  it('name the rights on the agent that the version knows', () => {
    expect(pveumLines(PLACE).join()).toContain('VM.GuestAgent.Unrestricted')
    expect(pveumLines({ ...PLACE, major: 8 }).join()).toContain('VM.Monitor')
    expect(pveumLines(PLACE).join()).not.toContain('VM.Monitor')
  })

  it('give a role the same privileges whatever the storage is for', () => {
    const rolesOf = (lines: readonly string[]) =>
      new Set(lines.flatMap(line => /role add (\S+ --privs "[^"]+")/.exec(line)?.[1] ?? []))
    const both = rolesOf(pveumLines({ ...PLACE, diskStorages: ['local', 'other'], seedStorage: 'local' }))
    const { seedStorage: _, ...withoutSeeds } = PLACE
    const disks = rolesOf(pveumLines({ ...withoutSeeds, diskStorages: ['local'] }))
    expect([...disks].filter(role => !both.has(role))).toEqual([])
    expect(new Set([...both].map(role => role.split(' ')[0])).size).toBe(both.size)
  })

  it('look into the zone of a vnet', () => {
    expect(pveumLines({ ...PLACE, bridge: 'tenant', zone: 'lab' }).join('\n')).toContain(
      '/sdn/zones/lab/tenant ',
    )
  })

  it('cover only what is missing when asked', () => {
    expect(
      pveumLines({ ...PLACE, missing: [{ path: '/pool/jobs' }] }).every(line => /DeputyJobs/.test(line)),
    ).toBe(true)
  })

  it('offer to see the load of nodes, but do not ask for it', () => {
    const lines = setupLines({ ...PLACE, tokenName: 'jobs' })
    expect(lines.filter(line => line.includes('Sys.Audit') || line.includes('DeputyWatch')).length).toBe(5)
    expect(lines.filter(line => line.includes('DeputyWatch')).every(line => line.startsWith('# '))).toBe(true)
  })

  it('make everything from nothing', () => {
    expect(
      setupLines({ ...PLACE, tokenName: 'jobs' })
        .slice(0, 3)
        .join('\n'),
    ).toMatch(/pool add jobs[\s\S]*user add deputy@pve[\s\S]*token add deputy@pve jobs --privsep 1/)
  })
})
