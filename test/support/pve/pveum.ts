import type { Request } from '../../../src/proxmox/api-request.ts'

/** Does what an administrator does with lines of `pveum`: as a shell would read them, through the API. */
export const runPveum = async (request: Request, lines: readonly string[]): Promise<void> => {
  for (const line of lines) await runLine(request, line)
}

const runLine = async (request: Request, line: string): Promise<void> => {
  const [command = '', otherwise] = line.split(' || ')
  try {
    await runOne(request, words(command))
  } catch (error) {
    if (otherwise === undefined) throw error
    await runOne(request, words(otherwise))
  }
}

const runOne = async (request: Request, argv: readonly string[]): Promise<void> => {
  const [program, subject, verb, name = '', ...rest] = argv
  const flags = Object.fromEntries(
    rest.flatMap((word, index) => (word.startsWith('--') ? [[word.slice(2), rest[index + 1] ?? '']] : [])),
  )
  const call = `${program} ${subject} ${verb}`
  if (call === 'pveum role add') await request('POST', '/access/roles', { roleid: name, ...flags })
  else if (call === 'pveum role modify') await request('PUT', `/access/roles/${name}`, flags)
  else if (call === 'pveum acl modify') await request('PUT', '/access/acl', { path: name, ...flags })
  else throw new Error(`this is not known here: ${argv.join(' ')}`)
}

const words = (text: string): string[] =>
  [...text.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(match => match[1] ?? match[2] ?? match[3] ?? '')
