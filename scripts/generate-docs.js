#!/usr/bin/env node
// Writes what can be told from the schemas of the built product: docs/reference, references of skills, tools of
// subagents. With --check it only tells whether they differ.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { GLOBAL_FLAGS } from '../dist/cli/args/spec.js'
import { COMMANDS, loadCommand } from '../dist/cli/commands/all-commands.js'
import { flagLabel } from '../dist/cli/help-text.js'
import { configSchema, ENVIRONMENT } from '../dist/config/schema.js'
import { ERROR_TABLE } from '../dist/jobs/errors.js'
import { manifestSchema } from '../dist/jobs/manifest.js'
import { createClusterToolset } from '../dist/mcp/tools/cluster/cluster-toolset.js'
import { jobsToolset } from '../dist/mcp/tools/jobs/jobs-toolset.js'
import { aliases } from '../dist/mcp/tools/proxmox/aliases.js'
import { overviewPage, toolsetPage } from '../dist/mcp/tools/proxmox/reference-pages.js'
import { TABLE } from '../dist/mcp/tools/proxmox/table/toolset-table.js'
import { CLUSTER_VARIABLES } from '../dist/nodes/cluster-variables.js'
import { propertyRows, table } from './docs-tables.js'
import { SUBAGENTS, withTools } from './subagents.js'

const NOTE =
  '<!-- Generated from the schemas by scripts/generate-docs.js: change those, then run npm run docs. -->'

/** Defaults that depend on the computer, in words. */
const COMPUTED = { 'limits.running': '2 × CPUs' }

/** Keys whose name says enough to a model, for which every word has its price, but not to every reader. */
const MEANINGS = {
  'agent.claudeModel': 'Model of the claude agent',
  'workspace.blob': 'Digest of a tar that was uploaded with `PUT /api/blobs`',
  'files[].text': 'Content as text',
  env: 'Environment variables; not for secrets',
  'resources.cpu': 'CPUs; a fraction is fine',
  'resources.disk': 'Space for the workspace',
  runtime: '`auto`, `sandbox`, … as `deputy doctor` lists them',
  isolation: '`vm`: only runtimes with a kernel for each job',
  'requires.os': '`linux`, `darwin`…',
  'requires.arch': '`x86_64`, `arm64`…',
  'requires.capabilities': 'What the machine must be able to do',
  'requires.node': 'This node of the cluster',
  vmTemplate: 'Template that a VM is made from',
  image: 'Image of a container to run in, such as `node:22`',
  pull: 'When to pull the image; default `missing`',
  platform: 'Platform of the image, such as `linux/arm64`',
  gpus: '`all`, or how many GPUs the container gets',
  statusMode: 'How much a status tells',
  labels: 'To find the job by',
}

/** Variables that are read where a connection is made. A test finds those that are missing here. */
const CONNECTIONS = [
  ['PROXMOX_HOST', 'host of the Proxmox VE API, with or without a port; several separated by commas'],
  ['PROXMOX_PORT', 'its port; default 8006'],
  ['PROXMOX_USER PROXMOX_USERNAME', 'user and realm; default `root@pam`'],
  ['PROXMOX_PASSWORD', 'password of the user, instead of a token'],
  ['PROXMOX_TOKEN_NAME PROXMOX_TOKEN_ID PROXMOX_API_TOKEN_ID', 'name of the API token, or `user@realm!name`'],
  ['PROXMOX_TOKEN_VALUE PROXMOX_TOKEN_SECRET PROXMOX_API_TOKEN_SECRET', 'value of the API token'],
  ['PROXMOX_SSL_MODE', '`strict`, `verify` or `insecure`'],
  ['PROXMOX_SSL_CA_CERT', 'file with the certificate authority of the cluster'],
  ['PROXMOX_SSL_FINGERPRINT', 'SHA-256 fingerprint of the certificate; `deputy proxmox trust HOST` pins it'],
  ['PROXMOX_VERIFY_SSL', '`false` is `PROXMOX_SSL_MODE=insecure`'],
  ['PROXMOX_TIMEOUT', 'milliseconds for a request'],
  ['PROXMOX_SSH_ENABLED', '`true`: commands in containers, over ssh to a node'],
  ['PROXMOX_SSH_NODE PROXMOX_SSH_HOST PROXMOX_SSH_PORT PROXMOX_SSH_USER', 'that node and how to reach it'],
  ['PROXMOX_SSH_KEY_PATH PROXMOX_SSH_HOST_KEY_FINGERPRINT', 'private key; fingerprint of the host key'],
  [
    'DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH CONTAINER_HOST',
    'the container engine, as docker and podman read them',
  ],
  ['REGISTRY_AUTH_FILE', 'credentials of registries, as podman reads it'],
  ['DEPUTY_TOOLSETS DEPUTY_READ_ONLY', 'toolsets of `deputy mcp`, in the configuration of an MCP client'],
]

const manifestPage = () => `# Manifest

${NOTE}

What a job is asked with: by \`submit_job\`, \`POST /api/jobs\`, \`deputy run FILE\`. A key that is not listed is an error that names the nearest one. The smallest manifest is \`{"task": "echo hello"}\`.

${table(['key', 'type', 'default', 'meaning'], propertyRows(z.toJSONSchema(manifestSchema, { io: 'input', unrepresentable: 'any' }), { meanings: MEANINGS }))}
`

const configurationPage = () => `# Configuration

${NOTE}

One file, YAML or JSON: \`config/config.yaml\` below \`DEPUTY_HOME\`, else \`~/.config/deputy/config.yaml\`. Environment variables win over the file, the file over the defaults. \`deputy config explain\` prints every setting with its value and where it comes from.

${table(['setting', 'type', 'default', 'meaning'], propertyRows(z.toJSONSchema(configSchema, { io: 'output', unrepresentable: 'any' }), { computed: COMPUTED }))}

## Environment variables

${table(
  ['variable', 'sets'],
  [
    ['`DEPUTY_HOME`', 'directory for configuration, state, socket and logs, instead of the XDG directories'],
    ...ENVIRONMENT.map(({ name, path }) => [`\`${name}\``, `\`${path}\``]),
    ...CLUSTER_VARIABLES.map(([name, path]) => [`\`${name}\``, `\`cluster.${path}\``]),
    [
      '`CLUSTER_<NODE>_HOST`, `CLUSTER_<NODE>_IP`, `CLUSTER_<NODE>_USER`',
      '`host`, `fallback` and `user` of a node, by its id or an alias; an unknown node is added',
    ],
    ['`NO_COLOR`, `FORCE_COLOR`', 'colours of the command line'],
    ['`DEPUTY_DEBUG`', 'the command line shows the stack of a defect'],
  ],
)}

## Connections

These have no setting in the file. The daemon reads them when it starts; an MCP client brings its own \`PROXMOX_*\` variables for its session.

${table(
  ['variable', 'meaning'],
  CONNECTIONS.map(([names, meaning]) => [
    names
      .split(' ')
      .map(name => `\`${name}\``)
      .join(', '),
    meaning,
  ]),
)}
`

const toolsPage = () => `# MCP tools

${NOTE}

The tools for delegating work, then those of the cluster, which are there when nodes are configured. Every answer is complete on its own; errors say what to do next.

${[...jobsToolset.tools, ...createClusterToolset({}).tools]
  .map(
    tool => `## ${tool.name}

${tool.description}

${tool.annotations.readOnlyHint ? 'Changes nothing.' : tool.annotations.destructiveHint ? 'Can take something away.' : 'Adds something.'}

${table(['argument', 'type', 'default', 'meaning'], propertyRows(tool.input, { depth: 1 }))}
`,
  )
  .join('\n')}`

const commandsPage = async () => {
  const sections = []
  for (const name of Object.keys(COMMANDS)) {
    const command = await loadCommand(name)
    const flags = Object.entries({ ...command.flags, ...GLOBAL_FLAGS }).map(([flag, spec]) => [
      `\`${flagLabel(flag, spec).trim()}\``,
      spec.summary,
    ])
    const examples = (command.examples ?? []).map(([line, what]) => `# ${what}\n${line}`).join('\n')
    sections.push(`## ${name}

${command.summary}.

\`\`\`
deputy ${`${name} ${command.usage}`.trim()}
\`\`\`

${command.description ?? ''}

${table(['flag', 'meaning'], flags)}
${examples === '' ? '' : `\n\`\`\`sh\n${examples}\n\`\`\`\n`}`)
  }
  return `# Commands

${NOTE}

Ids of jobs may be shortened to six or more characters of their beginning or end; \`last\` is the latest job. Exit status: 0 for success, 2 for an error of the operator, 1 for anything else; \`run\` and \`exec\` exit as their job did.

${sections.join('\n')}`
}

const errorsPage = () => `# Errors

${NOTE}

Every error has a \`code\` that does not change, a \`message\` that names the value, and mostly a \`hint\` that says what to do next.

${table(
  ['code', 'HTTP', 'exit', 'worth a retry'],
  Object.entries(ERROR_TABLE).map(([code, { http, exit, retryable }]) => [
    `\`${code}\``,
    String(http),
    String(exit),
    retryable ? 'yes' : 'no',
  ]),
)}
`

const proxmoxPages = () => {
  const skill = 'skills/proxmox-mcp-tools/references'
  const toolsets = [...TABLE, aliases]
  return {
    'docs/reference/proxmox-tools.md': overviewPage(toolsets, NOTE, name => `../../${skill}/${name}.md`),
    ...Object.fromEntries(toolsets.map(one => [`${skill}/${one.name}.md`, toolsetPage(one, NOTE)])),
  }
}

const agentPages = () =>
  Object.fromEntries(
    SUBAGENTS.map(name => {
      const path = `agents/${name}.md`
      return [path, withTools(name, readFileSync(new URL(path, root), 'utf8'))]
    }),
  )

const root = new URL('../', import.meta.url)

/** One empty line between blocks and one new line at the end, however the parts were put together. */
const tidy = text => `${text.replace(/\n{3,}/g, '\n\n').trim()}\n`

const pages = {
  'docs/reference/manifest.md': manifestPage(),
  'skills/delegating-work/references/manifest.md': manifestPage(),
  'docs/reference/configuration.md': configurationPage(),
  'docs/reference/tools.md': toolsPage(),
  'docs/reference/commands.md': await commandsPage(),
  'docs/reference/errors.md': errorsPage(),
  ...proxmoxPages(),
  ...agentPages(),
}

const stale = []
for (const [path, text] of Object.entries(pages)) {
  const file = new URL(path, root)
  // A subagent is written by hand but for its tools.
  const wanted = path.startsWith('agents/') ? text : tidy(text)
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) continue
  stale.push(path)
  if (process.argv.includes('--check')) continue
  mkdirSync(new URL('.', file), { recursive: true })
  writeFileSync(file, wanted)
}
if (process.argv.includes('--check') && stale.length > 0) {
  process.stderr.write(`Behind the schemas: ${stale.join(', ')}. Run: npm run docs\n`)
  process.exitCode = 1
}
