import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Control, startControl } from '../../support/http/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.close())

const newCode = async (body: object = {}): Promise<string> => {
  const answer = await control.socket({
    method: 'POST',
    path: '/api/console/codes',
    body: JSON.stringify(body),
  })
  expect(answer.status).toBe(201)
  return String(answer.json().url)
}
const logIn = (code: string, headers: Record<string, string> = {}) =>
  control.tcp({ method: 'POST', path: '/api/console/sessions', body: JSON.stringify({ code }), headers })
const codeOf = (url: string): string => url.split('#code=')[1] ?? ''
const asSession = async (body?: object): Promise<Record<string, string>> => {
  const { session } = (await logIn(codeOf(await newCode(body)))).json()
  return { authorization: `Bearer ${session}` }
}

it('a code from the socket logs in once, on TCP, with full rights', async () => {
  const url = await newCode()
  expect(url.startsWith(`${control.url}/#code=`)).toBe(true)
  const answer = await logIn(codeOf(url))
  expect(answer.status).toBe(201)
  const headers = { authorization: `Bearer ${answer.json().session}` }
  expect((await control.tcp({ path: '/api/jobs', headers })).status).toBe(200)
  const submitted = await control.tcp({ method: 'POST', path: '/api/jobs', body: '{"task":"x"}', headers })
  expect(submitted.status).toBe(201)
  expect((await logIn(codeOf(url))).status).toBe(401)
})

it('a token makes no code, and no code is guessed', async () => {
  const headers = { authorization: `Bearer ${control.tokens.full}` }
  expect((await control.tcp({ method: 'POST', path: '/api/console/codes', headers })).status).toBe(403)
  for (const code of ['', 'x', 'a'.repeat(32), 'b'.repeat(5000)])
    expect((await logIn(code)).status).not.toBe(201)
  expect(
    (await control.tcp({ path: '/api/jobs', headers: { authorization: 'Bearer console.1.x.y' } })).status,
  ).toBe(401)
})

it('a foreign page cannot use a code or a session', async () => {
  const origin = 'http://evil.example'
  const url = await newCode()
  expect((await logIn(codeOf(url), { origin })).status).toBe(403)
  expect((await logIn(codeOf(url))).status).toBe(201)
  expect((await control.tcp({ path: '/api/jobs', headers: { ...(await asSession()), origin } })).status).toBe(
    403,
  )
})

it.each(['POST', 'DELETE'])('only a session that began on a terminal decides on calls (%s)', async method => {
  const approve = async (headers: Record<string, string>) =>
    (await control.tcp({ method, path: '/api/proxmox/approvals/none', headers })).status
  expect(await approve({ authorization: `Bearer ${control.tokens.full}` })).toBe(403)
  expect(await approve(await asSession())).toBe(403)
  // Nothing waits under this id; what counts is that it was looked for.
  expect(await approve(await asSession({ may_approve: true }))).toBe(404)
})

it('jobs are found by text, id and runtime, and show their manifest', async () => {
  const { job_id } = await control.deputy.submit(
    { task: 'Compile the Kernel\nnow', idempotency_key: 'k' },
    'test',
  )
  const find = async (query: string): Promise<string[]> => {
    const { jobs } = JSON.parse((await control.socket(`/api/jobs?${query}`)).text)
    return jobs.map((job: { job_id: string }) => job.job_id)
  }
  expect(await find('search=kernel')).toEqual([job_id])
  expect(await find(`search=${job_id.slice(0, 20)}`)).toContain(job_id)
  expect(await find('search=100%25')).toEqual([])
  expect(await find('runtime=nowhere')).toEqual([])
  const manifest = (await control.socket(`/api/jobs/${job_id}/manifest`)).json()
  expect(manifest).toMatchObject({ task: 'Compile the Kernel\nnow', agentType: 'script', retries: 2 })
  expect((await control.socket(`/api/jobs/${crypto.randomUUID()}/manifest`)).status).toBe(404)
})

it('the daemon counts the jobs that ended today', async () => {
  const succeeded = async (): Promise<number> =>
    JSON.parse((await control.socket('/api/daemon')).text).last_day.success
  const before = await succeeded()
  await control.finished()
  expect(await succeeded()).toBe(before + 1)
})
