import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  BUSYBOX,
  createEngine,
  importBusybox,
  missingForEngine,
  type TestEngine,
} from '../support/containers/engines.ts'
import { fencedBlocks } from '../support/docs/fenced-blocks.ts'
import { type Ran, runTool } from '../support/e2e-tools.ts'
import { until } from '../support/engine.ts'
import { has } from '../support/has.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A build and a start take their time on a busy computer. */
const PATIENCE_MS = 300_000

const missing = missingForEngine('docker') ?? ['docker', 'mmdebstrap'].find(tool => !has(tool))

/** Deputy's own image, built from the Dockerfile, and run as compose.yaml and docs/install.md say. */
describe.skipIf(missing !== undefined)('the image of Deputy', () => {
  let engine: TestEngine

  const docker = (...args: string[]): Promise<Ran> =>
    runTool(engine.cli.argv[0]!, [...engine.cli.argv.slice(1), ...args], {
      env: { ...engine.cli.env, DOCKER_BUILDKIT: '0' },
      timeoutMs: PATIENCE_MS,
    })
  const expectOk = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await docker(...args)
    expect(status, stdout + stderr).toBe(0)
    return stdout.trim()
  }
  const inside = (...command: string[]): Promise<Ran> => docker('exec', 'deputy', ...command)

  /** Starts the service of compose.yaml with one of the overrides in docs/install.md, and waits for its health. */
  const up = async (override?: string): Promise<void> => {
    const service = serviceOf(override, engine.host.replace('unix://', ''))
    await expectOk('run', '-d', '--name', 'deputy', '--network', 'none', ...runFlags(service), 'deputy-mcp')
    const health = await expectOk('inspect', '-f', '{{json .Config.Healthcheck.Test}}', 'deputy')
    const [, ...command] = JSON.parse(health) as string[]
    await until(async () => (await inside(...command)).status === 0, 'the service to be healthy', PATIENCE_MS)
  }

  beforeAll(async () => {
    engine = await createEngine('docker')
    await importBusybox(engine)
    const base = join(engine.directory, 'node.tar')
    const script = fileURLToPath(new URL('../support/containers/node-image.sh', import.meta.url))
    const made = await runTool('sh', [script, base], { timeoutMs: PATIENCE_MS })
    expect(made.status, made.stderr).toBe(0)
    await engine.importImage(base, 'node:22-bookworm-slim')
    await expectOk('build', '--network', 'host', '-t', 'deputy-mcp', ROOT)
  }, 2 * PATIENCE_MS)
  afterEach(() => docker('rm', '-f', '-v', 'deputy'))
  afterAll(() => engine?.close())

  it(
    'starts without rights, and says what its sandboxes need',
    async () => {
      await up()
      const looks = 'id -u; touch /app/x /usr/x; grep -E "^(CapBnd|NoNewPrivs)" /proc/self/status'
      const { stdout, stderr } = await inside('sh', '-c', looks)
      expect(stdout).toMatch(/^1000\nCapBnd:\t0{16}\nNoNewPrivs:\t1\n$/)
      expect(stderr.match(/Read-only file system/g)).toHaveLength(2)
      const doctor = (await inside('deputy', 'doctor')).stdout
      expect(doctor).toContain('sandbox not ready')
      for (const option of optionsForSandboxes) expect(doctor).toContain(`--security-opt ${option}`)
      for (const runtime of ['auto', 'host']) {
        const refused = await inside('deputy', 'run', '--runtime', runtime, '--', 'true')
        expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining('hint: ') })
      }
    },
    PATIENCE_MS,
  )

  it(
    'runs a job in a container beside it, over the socket of the engine',
    async () => {
      await up(forContainers)
      const job = await inside('deputy', 'run', '--json', '--image', BUSYBOX, '--', 'echo', 'beside')
      expect(JSON.parse(job.stdout), job.stderr).toMatchObject({
        status: 'success',
        runtime: 'container',
        output: 'beside\n',
      })
    },
    PATIENCE_MS,
  )

  it(
    'runs a job in a sandbox with the security options of the documentation',
    async () => {
      await up(forSandboxes)
      const job = await inside(
        'deputy',
        'run',
        '--json',
        '--',
        'sh',
        '-c',
        'cat /data/state/token; echo inside',
      )
      expect(JSON.parse(job.stdout), job.stderr).toMatchObject({
        status: 'success',
        runtime: 'sandbox',
        output: expect.stringMatching(/No such file or directory\ninside\n$/),
      })
    },
    PATIENCE_MS,
  )
})

interface Service {
  readonly [key: string]: unknown
}

const [forContainers = '', forSandboxes = ''] = fencedBlocks(
  readFileSync(join(ROOT, 'docs/install.md'), 'utf8'),
)
  .filter(({ language, text }) => language === 'yaml' && text.startsWith('services:'))
  .map(({ text }) => text)
const optionsForSandboxes: string[] = parse(forSandboxes).services.deputy.security_opt

/** The service of compose.yaml. Compose appends the lists of an override. */
const serviceOf = (override: string | undefined, socket: string): Service => {
  const variables: Record<string, string> = { DOCKER_GID: String(statSync(socket).gid) }
  const read = (text: string): Service => {
    const expanded = text.replace(/\$\{(\w+)(?::-([^}]*))?\}/g, (_, name, other) => variables[name] ?? other)
    return parse(expanded.replace('/var/run/docker.sock:', `${socket}:`)).services.deputy
  }
  const service = { ...read(readFileSync(join(ROOT, 'compose.yaml'), 'utf8')) }
  for (const [key, value] of Object.entries(override === undefined ? {} : read(override)))
    service[key] = [...listOf(service[key]), ...listOf(value)]
  return service
}

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

/** The options of `docker run` for a service. Ports are left out: the container has no network here. */
const runFlags = ({ build: _, image: __, restart: ___, ports: ____, ...service }: Service): string[] =>
  Object.entries(service).flatMap(([key, value]) => {
    const option = OPTIONS[key]
    if (option === undefined) throw new Error(`compose.yaml has '${key}', which this test does not pass on`)
    if (value === true) return [option]
    if (Array.isArray(value)) return value.flatMap(one => [option, String(one)])
    return Object.entries(value as object).flatMap(([name, text]) => [option, `${name}=${text}`])
  })

const OPTIONS: Readonly<Record<string, string>> = {
  volumes: '-v',
  environment: '-e',
  read_only: '--read-only',
  tmpfs: '--tmpfs',
  cap_drop: '--cap-drop',
  security_opt: '--security-opt',
  group_add: '--group-add',
  init: '--init',
}
