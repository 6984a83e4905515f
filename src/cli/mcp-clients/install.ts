import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import type { Context } from '../context.ts'
import { quoteArgv } from '../manifest/shell.ts'
import { CLIENT_NAMES, CLIENTS, type McpClient, type ServerEntry } from './clients.ts'
import { type Change, editFile } from './edit-file.ts'
import { removeJsonServer, setJsonServer } from './json-servers.ts'
import { serverCommand } from './server-command.ts'
import { removeTomlTable, setTomlTable } from './toml-servers.ts'

export interface InstallOptions {
  readonly client: string
  readonly name: string
  readonly print: boolean
  readonly json: boolean
  /** More arguments for `deputy mcp`. */
  readonly flags: readonly string[]
}

/** Adds Deputy to a client's configuration, or prints how. The rest of the configuration stays. */
export const installClient = async (context: Context, options: InstallOptions): Promise<number> => {
  const client = clientOf(options.client)
  const { command, args } = serverCommand(context.env, client.isDesktop === true)
  const server: ServerEntry = {
    name: nameOf(options.name),
    command,
    args: [...args, ...options.flags],
    env: context.env.DEPUTY_HOME ? { DEPUTY_HOME: context.env.DEPUTY_HOME } : {},
  }
  const file = fileOf(client, context)
  if (options.json) return context.printJson({ client: options.client, file: file ?? null, server })
  if (options.print) return context.print(preview(client, server, file))
  if (client.program) {
    const replaced = await runProgram(client.program.remove(server.name)).then(
      () => true,
      () => false,
    )
    await runProgram(client.program.add(server))
    return context.print(`${replaced ? 'Updated' : 'Added'} ${server.name} in ${options.client}\n`)
  }
  const { key, entry, format } = settingsOf(client)
  const change = await editFile(file!, text =>
    format === 'toml'
      ? setTomlTable(text, `${key}.${server.name}`, entry(server))
      : setJsonServer(text, { file: file!, key, name: server.name }, entry(server)),
  )
  return context.print(`${SAID[change]} ${file}\n`)
}

/** Removes what `install` added. */
export const uninstallClient = async (
  context: Context,
  options: Pick<InstallOptions, 'client' | 'name'>,
): Promise<number> => {
  const client = clientOf(options.client)
  const name = nameOf(options.name)
  const file = fileOf(client, context)
  if (client.program) {
    await runProgram(client.program.remove(name))
    return context.print(`Removed ${name} from ${options.client}\n`)
  }
  const { key, format } = settingsOf(client)
  const change = await editFile(file!, text =>
    format === 'toml'
      ? removeTomlTable(text, `${key}.${name}`)
      : removeJsonServer(text, { file: file!, key, name }),
  )
  return context.print(`${SAID[change]} ${file}\n`)
}

const SAID: Record<Change, string> = {
  added: 'Added to',
  updated: 'Updated in',
  unchanged: 'Nothing to do: it is already in',
  removed: 'Removed from',
  absent: 'Nothing to do: it is not in',
}

const fileOf = (client: McpClient, { env }: Context): string | undefined =>
  client.file?.({ env, platform: process.platform })

const settingsOf = ({ key, entry, format }: McpClient) => {
  if (key === undefined || entry === undefined) throw new Error('a client without a program has a file')
  return { key, entry, format }
}

const clientOf = (name: string): McpClient => {
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined
  if (client) return client
  throw new AppError('invalid', `Unknown client '${name}'${didYouMean(name, CLIENT_NAMES) || '.'}`, {
    hint: `Known clients: ${CLIENT_NAMES.join(', ')}. For any other: deputy mcp install project --print`,
  })
}

const nameOf = (name: string): string => {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name)) return name
  throw new AppError('invalid', `Invalid server name '${name}': use letters, digits, - and _.`)
}

const preview = (client: McpClient, server: ServerEntry, file: string | undefined): string => {
  if (client.program) return `${quoteArgv(client.program.add(server))}\n`
  const { key, entry, format } = settingsOf(client)
  if (format === 'toml') return `# ${file}\n${setTomlTable('', `${key}.${server.name}`, entry(server)).text}`
  return `// ${file}\n${JSON.stringify({ [key]: { [server.name]: entry(server) } }, null, 2)}\n`
}

const runProgram = async (argv: readonly string[]): Promise<void> => {
  const [program = '', ...args] = argv
  try {
    await promisify(execFile)(program, args, { timeout: 60_000 })
  } catch (error) {
    const detail = error as { code?: unknown; stderr?: string; message: string }
    const missing = detail.code === 'ENOENT'
    const why = missing ? `${program} is not installed here` : detail.stderr?.trim() || detail.message
    throw new AppError('unsupported', `${why}.`.replace(/\.\.$/, '.'), {
      hint: `By hand: ${quoteArgv(argv)}`,
      cause: error,
    })
  }
}
