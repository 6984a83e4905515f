import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { KEPT, LIMITS } from '../jobs/limits.ts'
import { SANDBOX_FIRST } from '../jobs/provider-order.ts'
import { SIZE_PATTERN } from '../jobs/sizes.ts'
import { clusterSchema } from '../nodes/inventory.ts'
import { containerSchema } from './container-section.ts'
import { microvmSchema } from './microvm-section.ts'
import { callbackSchema, proxmoxProviderSchema } from './proxmox-section.ts'
import { proxmoxToolsSchema } from './proxmox-tools.ts'

const size = z.string().regex(SIZE_PATTERN, "is not a size such as '512M' or '2G'")
const name = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not a name for an environment variable')
const source = z.union([
  z.string().regex(/^(env|file|cmd):./, "is not 'env:NAME', 'file:/path' or 'cmd:program arg'"),
  z.array(z.string().min(1)).min(1),
])

const network = z.union([z.enum(['none', 'full']), z.array(z.string())])

/** A secret with restrictions. A condition that is left out does not restrict. */
const secretRule = z.strictObject({
  from: source,
  agents: z.array(z.string()).optional(),
  runtimes: z.array(z.string()).optional(),
  networks: z.array(z.string()).optional(),
  labels: z.array(z.string()).optional(),
})

/** The whole configuration. The reference and `deputy config explain` are derived from it. */
export const configSchema = z.strictObject({
  store: z
    .string()
    .regex(/^postgres(ql)?:\/\//, "is not an address such as 'postgres://USER@HOST/DATABASE'")
    .optional()
    .describe(
      'PostgreSQL database for jobs and output, with ?schema=, ?pool= and the TLS settings of the server; default: SQLite in the state directory',
    ),
  fleet: z.strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'is not a name of letters, digits, dots and dashes')
      .optional()
      .describe('Name of this daemon among those that share the database; default: the name of the computer'),
    key: z
      .string()
      .regex(/^\//, 'is not an absolute path')
      .optional()
      .describe(
        'File with the key of the fleet, the same on each daemon: daemons that have it take over the jobs of each other on nodes and in containers',
      ),
    lease: z
      .number()
      .int()
      .min(2)
      .max(300)
      .default(15)
      .describe('Seconds without a sign of life after which other daemons consider this one gone'),
    wait: z
      .number()
      .int()
      .min(0)
      .default(3600)
      .describe('Seconds that jobs wait for their daemon when it is gone; then they fail as lost'),
  }),
  http: z.strictObject({
    enabled: z.boolean().default(true).describe('Listen on TCP besides the Unix socket'),
    host: z.string().default('127.0.0.1').describe('Address of the control listener'),
    port: z
      .number()
      .int()
      .min(0)
      .max(65_535)
      .default(8764)
      .describe('TCP port; if it is busy, a free one is used'),
    allowedHosts: z
      .array(z.string())
      .default([])
      .describe('More names for the Host header, for reverse proxies'),
  }),
  defaults: z.strictObject({
    runtime: z.string().default('auto').describe('Runtime of jobs that do not name one'),
    order: z
      .array(z.string())
      .min(1)
      .optional()
      .describe(
        `Order in which auto tries the runtimes; default: ${SANDBOX_FIRST.join(', ')}, but proxmox first where proxmox.template is set`,
      ),
    timeout: z
      .number()
      .min(1)
      .max(LIMITS.timeoutSeconds)
      .default(3600)
      .describe('Timeout of a job in seconds'),
    cpu: z.number().min(0.1).max(32).default(2).describe('CPUs of a job'),
    memory: size.default('2G').describe('Memory of a job'),
    disk: size
      .optional()
      .describe('Disk of a job; default: 1G in a sandbox or container, the disk of the template in a VM'),
    lease: z
      .number()
      .int()
      .min(60)
      .max(LIMITS.leaseSeconds)
      .default(86_400)
      .describe('Seconds a persistent machine is kept'),
    queueTimeout: z
      .number()
      .min(1)
      .max(LIMITS.queueSeconds)
      .default(7 * 86_400)
      .describe('Seconds a job may wait to start'),
  }),
  limits: z.strictObject({
    running: z
      .number()
      .int()
      .min(1)
      .max(1000)
      .default(2 * availableParallelism())
      .describe('Maximum number of running jobs per runtime'),
    queue: z.number().int().min(1).max(1_000_000).default(10_000).describe('Maximum number of waiting jobs'),
    upload: size.default('1G').describe('Maximum size of a workspace'),
    processes: z
      .number()
      .int()
      .min(16)
      .max(100_000)
      .default(512)
      .describe('Maximum number of processes and threads of a job in a sandbox or container'),
  }),
  keep: z.strictObject({
    outputHead: z
      .number()
      .int()
      .min(1024)
      .default(KEPT.outputHeadBytes)
      .describe('Bytes kept from the start of the output'),
    outputTail: z
      .number()
      .int()
      .min(1024)
      .default(KEPT.outputTailBytes)
      .describe('Bytes kept from the end of the output'),
    artifactFiles: z
      .number()
      .int()
      .min(0)
      .default(KEPT.artifactFiles)
      .describe('Maximum number of artifacts of a job'),
    artifactBytes: z
      .number()
      .int()
      .min(0)
      .default(KEPT.artifactBytes)
      .describe('Maximum bytes of artifacts of a job'),
    patchBytes: z.number().int().min(0).default(KEPT.patchBytes).describe('Maximum bytes of a patch'),
    jobs: z.number().int().min(1).default(100_000).describe('Finished jobs to keep'),
    days: z.number().min(0.01).default(30).describe('Days to keep a finished job'),
    bytes: size.default('20G').describe('Maximum bytes of all output and artifacts'),
  }),
  supervision: z.strictObject({
    heartbeat: z
      .number()
      .int()
      .min(30)
      .default(120)
      .describe('Seconds without a heartbeat after which a remote machine is lost'),
    cleanup: z
      .number()
      .int()
      .min(10)
      .default(30)
      .describe('Seconds between two sweeps for orphans and expired jobs'),
    grace: z
      .number()
      .min(0)
      .max(300)
      .default(5)
      .describe('Seconds between SIGTERM and SIGKILL when a job is stopped'),
    provisioning: z
      .number()
      .int()
      .min(1)
      .default(600)
      .describe('Timeout for provisioning a machine in seconds'),
  }),
  sandbox: z.strictObject({
    enabled: z.boolean().default(true),
    backend: z
      .enum(['auto', 'bwrap', 'unshare'])
      .default('auto')
      .describe('Program that creates the namespaces'),
  }),
  container: containerSchema,
  microvm: microvmSchema,
  images: z.strictObject({
    allow: z
      .array(z.string().min(1))
      .default(['*'])
      .describe("Images that jobs may use; '*' stands for any text, as in 'ghcr.io/acme/*'"),
  }),
  host: z.strictObject({
    allow: z.boolean().default(false).describe('Let jobs run on this computer without isolation'),
  }),
  callback: callbackSchema,
  proxmox: proxmoxProviderSchema,
  cluster: clusterSchema,
  proxmoxTools: proxmoxToolsSchema,
  workspaces: z.strictObject({
    allow: z
      .array(z.string().startsWith('/', 'must be absolute'))
      .default([])
      .describe(
        'Directories, with their subdirectories, that MCP and HTTP clients may use as a workspace besides the project they were started in',
      ),
  }),
  secrets: z
    .record(name, z.union([source, secretRule]))
    .default({
      ANTHROPIC_API_KEY: 'env:ANTHROPIC_API_KEY',
      CLAUDE_CODE_OAUTH_TOKEN: 'env:CLAUDE_CODE_OAUTH_TOKEN',
    })
    .describe('Secrets by name: their source, and which jobs may use them'),
  claude: z.strictObject({
    baseUrl: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('URL that the claude agent sends its requests and token to; default: the Anthropic API'),
  }),
  agents: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/),
      z.strictObject({
        argv: z.array(z.string()).min(1).describe('{task} and {model} are replaced within their argument'),
        env: z.record(name, z.string()).default({}),
        secrets: z.array(name).default([]),
        network: network.optional(),
        programs: z.array(z.string().startsWith('/')).default([]).describe('More paths to mount read-only'),
        format: z.enum(['text', 'claude-stream-json']).default('text'),
      }),
    )
    .default({})
    .describe('More agents, by name'),
  log: z.strictObject({
    level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  }),
})

export type Config = z.output<typeof configSchema>
export type SecretRule = z.output<typeof secretRule>
export type AgentPreset = Config['agents'][string]

/** Environment variables and the settings they set. Upper-case names without a prefix come from older systems. */
export const ENVIRONMENT: readonly EnvironmentVariable[] = [
  { name: 'DEPUTY_STORE', path: 'store', type: 'string' },
  { name: 'DEPUTY_NAME', path: 'fleet.name', type: 'string' },
  { name: 'DEPUTY_HTTP', path: 'http.enabled', type: 'boolean' },
  { name: 'DEPUTY_HTTP_HOST', path: 'http.host', type: 'string' },
  { name: 'DEPUTY_HTTP_PORT', path: 'http.port', type: 'number' },
  { name: 'MCP_ALLOWED_HOSTS', path: 'http.allowedHosts', type: 'list' },
  { name: 'DEPUTY_RUNTIME', path: 'defaults.runtime', type: 'string' },
  { name: 'DEFAULT_TIMEOUT', path: 'defaults.timeout', type: 'number' },
  { name: 'DEFAULT_CPU', path: 'defaults.cpu', type: 'number' },
  { name: 'DEFAULT_MEMORY', path: 'defaults.memory', type: 'string' },
  { name: 'DEFAULT_DISK', path: 'defaults.disk', type: 'string' },
  { name: 'DEPUTY_MAX_RUNNING', path: 'limits.running', type: 'number' },
  { name: 'DEPUTY_MAX_QUEUE', path: 'limits.queue', type: 'number' },
  { name: 'HEARTBEAT_THRESHOLD_SECONDS', path: 'supervision.heartbeat', type: 'number' },
  { name: 'CLEANUP_INTERVAL_SECONDS', path: 'supervision.cleanup', type: 'number' },
  { name: 'DEPUTY_SANDBOX_BACKEND', path: 'sandbox.backend', type: 'string' },
  { name: 'DEPUTY_ALLOW_HOST', path: 'host.allow', type: 'boolean' },
  { name: 'DEPUTY_IMAGE', path: 'container.image', type: 'string' },
  { name: 'CALLBACK_HOST', path: 'callback.host', type: 'string' },
  { name: 'CALLBACK_PORT', path: 'callback.port', type: 'number' },
  { name: 'CALLBACK_URL', path: 'callback.url', type: 'string' },
  { name: 'CALLBACK_TLS', path: 'callback.tls', type: 'boolean' },
  { name: 'DEFAULT_VM_TEMPLATE', path: 'proxmox.template', type: 'string' },
  { name: 'PROXMOX_POOL', path: 'proxmox.pool', type: 'string' },
  { name: 'PROXMOX_SEED_STORAGE', path: 'proxmox.seedStorage', type: 'string' },
  { name: 'PROXMOX_INJECTION', path: 'proxmox.injection', type: 'string' },
  { name: 'PROXMOX_CHANNEL', path: 'proxmox.channel', type: 'string' },
  { name: 'PROXMOX_BRIDGE', path: 'proxmox.bridge', type: 'string' },
  { name: 'PROXMOX_ZONE', path: 'proxmox.zone', type: 'string' },
  { name: 'PROXMOX_VLAN', path: 'proxmox.vlan', type: 'number' },
  { name: 'PROXMOX_WARM', path: 'proxmox.warm', type: 'number' },
  { name: 'PROXMOX_WARM_TEMPLATES', path: 'proxmox.warmTemplates', type: 'list' },
  { name: 'PROXMOX_WARM_AGE', path: 'proxmox.warmAge', type: 'number' },
  { name: 'PROXMOX_ALLOW_ELEVATED', path: 'proxmoxTools.allowElevated', type: 'boolean' },
  { name: 'PROXMOX_SAFE_MODE', path: 'proxmoxTools.readOnly', type: 'boolean' },
  { name: 'ANTHROPIC_BASE_URL', path: 'claude.baseUrl', type: 'string' },
  { name: 'DEPUTY_LOG_LEVEL', path: 'log.level', type: 'string' },
]

export interface EnvironmentVariable {
  readonly name: string
  readonly path: string
  readonly type: 'string' | 'number' | 'boolean' | 'list'
}
