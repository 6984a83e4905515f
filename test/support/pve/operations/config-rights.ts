import { check, isRealRoot, may } from '../acl.ts'
import { badParams, die } from '../errors.ts'
import type { Context } from '../operation.ts'
import { DRIVE, parseProps } from '../properties.ts'
import type { Values } from '../schema.ts'
import { rightFor } from './config-keys.ts'

/** Each key of a configuration asks for a right of its own, and those that name something else for one there. */
export const checkConfigRights = ({ state, auth }: Context, at: string, params: Values): void => {
  if (params.sshkeys !== undefined) checkSshKeys(String(params.sshkeys))
  for (const [key, given] of Object.entries(params)) {
    const right = rightFor(key, String(given))
    if (right === 'root') {
      if (!isRealRoot(auth)) die(`only root can set '${key}' config`)
      continue
    }
    const rights =
      key.startsWith('ipconfig') || right === 'Cloudinit'
        ? ['VM.Config.Cloudinit', 'VM.Config.Network']
        : [`VM.Config.${right}`]
    check(state, auth, at, rights, true)
    if (/^net\d+$/.test(key)) checkBridge({ state, auth }, String(given))
    const storage = DRIVE.test(key) ? /^([^:,]+):/.exec(String(given))?.[1] : undefined
    if (storage)
      check(
        state,
        auth,
        `/storage/${storage}`,
        right === 'CDROM' ? ['Datastore.Audit', 'Datastore.AllocateSpace'] : ['Datastore.AllocateSpace'],
        true,
      )
  }
}

export const checkBridge = ({ state, auth }: Pick<Context, 'state' | 'auth'>, net: string): void => {
  const { bridge, tag } = parseProps(net, 'model')
  if (bridge === undefined || Number(state.version.version.split('.')[0]) < 8) return
  const at = `/sdn/zones/${state.vnets.get(bridge) ?? 'localnetwork'}/${bridge}`
  if (tag !== undefined && may(state, auth, `${at}/${tag}`, ['SDN.Use'])) return
  check(state, auth, at, ['SDN.Use'])
}

const checkSshKeys = (value: string): void => {
  for (const line of decodeURIComponent(value)
    .split('\n')
    .filter(text => text.trim() !== '')) {
    if (!/^(ssh-|ecdsa-|sk-)\S+ \S+/.test(line))
      throw badParams({ sshkeys: 'SSH public key validation error' })
  }
}
