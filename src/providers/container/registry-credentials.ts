import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { field, readJson, text } from './engine-address.ts'

export interface CredentialSources {
  readonly env: NodeJS.ProcessEnv
  readonly home: string
}

const DOCKER_HUB = 'https://index.docker.io/v1/'
const HELPER_MS = 20_000

/**
 * The value of X-Registry-Auth for a registry, from the configuration of docker and its credential helpers, or that of
 * podman; undefined where nobody has logged in.
 */
export const registryAuth = async (
  registry: string,
  { env, home }: CredentialSources,
): Promise<string | undefined> => {
  const server = registry === 'docker.io' ? DOCKER_HUB : registry
  const files = [
    join(env.DOCKER_CONFIG || join(home, '.docker'), 'config.json'),
    ...(env.REGISTRY_AUTH_FILE ? [env.REGISTRY_AUTH_FILE] : []),
    ...(env.XDG_RUNTIME_DIR ? [join(env.XDG_RUNTIME_DIR, 'containers/auth.json')] : []),
  ]
  for (const file of files) {
    const config = readJson(file)
    const helper = text(field(config, 'credHelpers'), server) ?? text(config, 'credsStore')
    const found = (helper && (await fromHelper(helper, server, env))) || fromFile(config, [server, registry])
    if (found) return Buffer.from(JSON.stringify({ ...found, serveraddress: server })).toString('base64url')
  }
  return undefined
}

type Login = { username: string; password: string } | { identitytoken: string }

const fromFile = (config: unknown, servers: readonly string[]): Login | undefined => {
  for (const server of servers) {
    const entry = field(field(config, 'auths'), server)
    const token = text(entry, 'identitytoken')
    if (token !== undefined) return { identitytoken: token }
    const auth = Buffer.from(text(entry, 'auth') ?? '', 'base64').toString('utf8')
    const at = auth.indexOf(':')
    if (at > 0) return { username: auth.slice(0, at), password: auth.slice(at + 1) }
  }
  return undefined
}

/** A helper that has nothing for this server exits with an error and says so on stdout. */
const fromHelper = (name: string, server: string, env: NodeJS.ProcessEnv): Promise<Login | undefined> =>
  new Promise((resolve, reject) => {
    const program = `docker-credential-${name}`
    const child = spawn(program, ['get'], { stdio: ['pipe', 'pipe', 'ignore'], timeout: HELPER_MS, env })
    const chunks: Buffer[] = []
    child.stdin.on('error', () => undefined)
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.once('error', cause =>
      reject(
        new AppError(
          'unavailable',
          `Cannot run ${program}, which ~/.docker/config.json names: ${cause.message}.`,
          {
            hint: `Install ${program}, or remove it from ~/.docker/config.json.`,
            retryable: false,
            cause,
          },
        ),
      ),
    )
    child.once('close', code =>
      resolve(code === 0 ? parseLogin(Buffer.concat(chunks).toString('utf8')) : undefined),
    )
    child.stdin.end(server)
  })

const parseLogin = (answer: string): Login | undefined => {
  try {
    const parsed: unknown = JSON.parse(answer)
    const [username, secret] = [text(parsed, 'Username'), text(parsed, 'Secret')]
    if (secret === undefined) return undefined
    return username === '<token>' ? { identitytoken: secret } : { username: username ?? '', password: secret }
  } catch {
    return undefined
  }
}
