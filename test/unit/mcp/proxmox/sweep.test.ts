import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { aliases } from '../../../../src/mcp/tools/proxmox/aliases.ts'
import { TABLE } from '../../../../src/mcp/tools/proxmox/table/toolset-table.ts'
import type { Catalogue } from '../../../../src/proxmox/catalogue/load-catalogue.ts'
import { createApiChecker, type Sent } from '../../../support/proxmox/api-checker.ts'
import { createFakeCluster } from '../../../support/proxmox/fake-cluster.ts'
import { allNames, leastNames, sampleArgs } from '../../../support/proxmox/samples.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'
import { type Cluster, startCluster } from '../../../support/pve.ts'

const checker = createApiChecker()
/** The emulated cluster knows fewer operations, but of those also what they need and which values they take. */
let emulated: Catalogue
let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster()
  emulated = await cluster.connect().catalogue()
})
afterAll(() => cluster.close())

/** A file travels in the body. */
const isUpload = (path: string) => path.endsWith('/upload')

const refused = ({ method, path, params }: Sent): string[] => {
  if (!emulated.describe(method, path) || isUpload(path)) return []
  const problems = emulated.check(method, path, params).filter(({ severity }) => severity === 'error')
  return problems.map(({ param, problem }) => `${method} ${path}: ${param ?? ''} ${problem}`)
}
const cases = [...TABLE, aliases].flatMap(({ tools }) =>
  tools.flatMap(tool =>
    Object.entries(tool.actions).map(([action, row]) => ({
      tool,
      action,
      row,
      label: `${tool.name} ${action}`.trim(),
    })),
  ),
)

/** `pct exec` is no API call; it has tests of its own. */
const overSsh = (label: string) => label === 'proxmox_lxc_exec'

describe('every action of every tool', () => {
  it('is checked against an index of the whole API', () => {
    expect(checker.operations.length).toBeGreaterThan(640)
    expect(checker.check({ method: 'GET', path: '/cluster/sdn/subnets', params: {} })).toHaveLength(1)
    expect(
      checker.check({ method: 'POST', path: '/nodes/a/qemu/1/clone', params: { newid: 'x' } }),
    ).toHaveLength(1)
    expect(
      checker.check({ method: 'POST', path: '/nodes/a/qemu/1/clone', params: { nope: 1 } }),
    ).toHaveLength(1)
  })

  for (const { tool, action, row, label } of cases.filter(({ label }) => !overSsh(label))) {
    for (const [what, names] of [
      ['required parameters only', leastNames(tool, action, row)],
      ['all parameters', allNames(tool, action, row)],
    ] as const) {
      it(`${label} with ${what} sends only what Proxmox VE knows`, async () => {
        const api = createFakeCluster()
        const args = sampleArgs(tool, action, names)
        const files = mkUploads(args)
        const { call } = proxmoxTools(api, {
          policy: { allowElevated: true, confirm: 'token', uploadDirs: files.dirs },
        })
        const first = await call(tool.name, { ...args, ...files.args })
        if (first.data.status === 'needs_confirmation')
          await call(tool.name, { ...args, ...files.args, plan_token: first.data.plan_token })
        expect(api.sent.flatMap(checker.check)).toEqual([])
        expect(api.sent.flatMap(refused)).toEqual([])
        expect(api.sent.some(request => request.method === row.method || args['dry-run'] === true)).toBe(true)
      })
    }
  }
})

const mkUploads = (args: Record<string, unknown>) => {
  if (args.action !== 'upload') return { args: {}, dirs: [] }
  const dir = join(process.env.TMPDIR ?? '/tmp', `deputy-upload-${process.pid}`)
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'debian.iso'), 'iso')
  return args.certificates
    ? { args: {}, dirs: [] }
    : {
        args: {
          file: join(dir, 'debian.iso'),
          ...(args.checksum ? { checksum: createHash('md5').update('iso').digest('hex') } : {}),
        },
        dirs: [dir],
      }
}
