import { check, may } from '../acl.ts'
import { die } from '../errors.ts'
import type { Operation } from '../operation.ts'
import type { ParamSchema } from '../schema.ts'

const S: ParamSchema = { type: 'string', optional: true }
const POOLID: ParamSchema = { type: 'string', format: 'pve-poolid' }

export const poolOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/pools',
    name: 'index',
    description: 'Lists pools, or tells what one holds.',
    params: { poolid: { ...POOLID, optional: true }, type: S },
    permission: { user: 'all' },
    returns: 'array',
    run: ({ state, auth, params }) =>
      [...state.pools]
        .filter(
          ([poolid]) =>
            (params.poolid === undefined || poolid === params.poolid) &&
            may(state, auth, `/pool/${poolid}`, ['Pool.Audit']),
        )
        .map(([poolid, { comment }]) => ({
          poolid,
          comment,
          ...(params.poolid === undefined
            ? {}
            : {
                members: [...state.vms.values()]
                  .filter(vm => vm.pool === poolid)
                  .map(vm => ({
                    id: `qemu/${vm.vmid}`,
                    type: 'qemu',
                    vmid: vm.vmid,
                    node: vm.node,
                    name: vm.config.name,
                    status: vm.status,
                  })),
              }),
        })),
  },
  {
    method: 'POST',
    path: '/pools',
    name: 'create_pool',
    description: 'Makes a pool.',
    params: { poolid: POOLID, comment: S },
    permission: { check: ['/pool/{poolid}', ['Pool.Allocate']] },
    returns: 'null',
    run: ({ state, params }) => {
      const poolid = String(params.poolid)
      if (state.pools.has(poolid)) die(`create pool failed: pool '${poolid}' already exists`)
      state.pools.set(poolid, { comment: String(params.comment ?? ''), storages: new Set() })
      return null
    },
  },
  {
    method: 'PUT',
    path: '/pools',
    name: 'update_pool',
    description: 'Changes a pool.',
    params: {
      poolid: POOLID,
      comment: S,
      vms: S,
      storage: S,
      delete: { type: 'boolean', optional: true },
      'allow-move': { type: 'boolean', optional: true },
    },
    permission: { check: ['/pool/{poolid}', ['Pool.Allocate']] },
    returns: 'null',
    run: ({ state, auth, params }) => {
      const poolid = String(params.poolid)
      const pool = state.pools.get(poolid) ?? die(`update pools failed: pool '${poolid}' does not exist`)
      for (const id of String(params.vms ?? '')
        .split(/[\s,;]+/)
        .filter(Boolean)) {
        check(state, auth, `/vms/${id}`, ['VM.Allocate'])
        const vm = state.vms.get(Number(id)) ?? die(`VM ${id} does not exist`)
        if (!params.delete && vm.pool !== undefined && vm.pool !== poolid && !params['allow-move'])
          die(`VM ${id} belongs already to pool '${vm.pool}' and 'allow-move' is not set`)
        vm.pool = params.delete ? undefined : poolid
      }
      for (const id of String(params.storage ?? '')
        .split(/[\s,;]+/)
        .filter(Boolean)) {
        if (params.delete) pool.storages.delete(id)
        else pool.storages.add(id)
      }
      return null
    },
  },
  {
    method: 'DELETE',
    path: '/pools',
    name: 'delete_pool',
    description: 'Removes an empty pool.',
    params: { poolid: POOLID },
    permission: { check: ['/pool/{poolid}', ['Pool.Allocate']] },
    returns: 'null',
    run: ({ state, params }) => {
      const poolid = String(params.poolid)
      if ([...state.vms.values()].some(vm => vm.pool === poolid))
        die(`delete pool failed: pool '${poolid}' is not empty`)
      if (!state.pools.delete(poolid)) die(`delete pool failed: pool '${poolid}' does not exist`)
      return null
    },
  },
]
