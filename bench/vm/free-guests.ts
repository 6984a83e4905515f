import { parse } from 'yaml'
import { CALLBACK_PATH } from '../../src/guest/seed.ts'
import { readIso } from '../../test/support/iso-reader.ts'
import type { GuestDriver, GuestSpec } from '../../test/support/pve/guests/driver.ts'

/**
 * Guests that cost nothing: no process, no shell, a few lines that say to the guest listener what a runner says.
 * What is measured with them is the daemon and its calls alone.
 */
export const freeGuests = (): GuestDriver => ({
  start: async spec => {
    const ending = new AbortController()
    void live(spec, ending.signal).catch(() => {})
    return { agent: () => undefined, shutdown: async () => true, stop: async () => ending.abort() }
  },
})

const live = async (spec: GuestSpec, signal: AbortSignal): Promise<void> => {
  const [url = '', token = ''] = callbackOf(spec).split('\n')
  const call = async (method: 'GET' | 'POST', path: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${url}/guest/v1/${path}`, { method, headers, signal })
    return answer.text()
  }
  let job: string | undefined
  while (job === undefined) job = /^job (\S+)$/m.exec(await call('GET', 'work'))?.[1]
  await call('POST', `jobs/${job}/started`)
  await call('POST', `jobs/${job}/exit?code=0&signal=0&ended=`)
  spec.poweredOff()
}

/** Address and token, from the seed image. */
const callbackOf = ({ cdroms }: GuestSpec): string => {
  const userData = cdroms.map(image => readIso(image)?.files.get('user-data')).find(Boolean)
  const { write_files } = parse(userData?.toString() ?? '{}') as { write_files?: SeedFile[] }
  const content = write_files?.find(({ path }) => path === CALLBACK_PATH)?.content
  return Buffer.from(content ?? '', 'base64').toString()
}

interface SeedFile {
  readonly path: string
  readonly content: string
}
