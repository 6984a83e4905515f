import { randomUUID } from 'node:crypto'
import { check, may, privilegesOn } from '../acl.ts'
import { checkPassword, createTicket } from '../auth.ts'
import { badParams, die, PveError } from '../errors.ts'
import type { Context, Operation } from '../operation.ts'
import { knownPrivileges } from '../roles.ts'
import type { ParamSchema } from '../schema.ts'

const S: ParamSchema = { type: 'string', optional: true }
const USERID: ParamSchema = { type: 'string', format: 'pve-userid', maxLength: 64 }
const MODIFY = { check: ['/access', ['Permissions.Modify']] } as const

export const accessOperations: readonly Operation[] = [
  {
    method: 'POST',
    path: '/access/ticket',
    name: 'create_ticket',
    description: 'Logs in.',
    params: {
      username: { type: 'string', maxLength: 64 },
      password: { type: 'string' },
      realm: S,
      otp: S,
      'tfa-challenge': S,
      'new-format': { type: 'boolean', optional: true },
      path: S,
      privs: S,
    },
    permission: { user: 'world' },
    tokenForbidden: true,
    returns: 'object',
    run: ({ state, params }) => {
      const username = String(params.username)
      const user =
        params.realm === undefined || username.includes('@') ? username : `${username}@${params.realm}`
      if (!checkPassword(state, user, String(params.password)))
        throw new PveError(401, 'authentication failure')
      return { username: user, ...createTicket(state, user), cap: {}, clustername: 'emulated' }
    },
  },
  {
    method: 'PUT',
    path: '/access/password',
    name: 'change_password',
    description: 'Changes the password of a user.',
    params: { userid: USERID, password: { type: 'string' }, 'confirmation-password': S },
    permission: { user: 'all' },
    tokenForbidden: true,
    returns: 'null',
    run: () => null,
  },
  {
    method: 'GET',
    path: '/access/permissions',
    name: 'permissions',
    description: 'Tells the effective rights of the caller.',
    params: { path: S, userid: S },
    permission: { user: 'all' },
    returns: 'object',
    run: ({ state, auth, params }) => {
      const paths =
        params.path === undefined
          ? [
              ...new Set([
                '/',
                '/access',
                '/nodes',
                '/pool',
                '/sdn',
                '/storage',
                '/vms',
                ...state.acl.map(rule => rule.path),
              ]),
            ]
          : [String(params.path)]
      const entries = paths
        .map(path => [path, privilegesOn(state, auth, path)] as const)
        .filter(([, held]) => held.size > 0)
      // The number is the propagate flag, not a yes or no.
      return Object.fromEntries(
        entries.map(([path, held]) => [
          path,
          Object.fromEntries([...held].map(([name, flag]) => [name, Number(flag)])),
        ]),
      )
    },
  },
  {
    method: 'GET',
    path: '/access/users',
    name: 'index',
    description: 'Lists the users.',
    params: { enabled: { type: 'boolean', optional: true }, full: { type: 'boolean', optional: true } },
    permission: { user: 'all' },
    returns: 'array',
    run: ({ state, auth }) =>
      [...state.users]
        .filter(
          ([userid]) =>
            userid === auth.user || may(state, auth, '/access', ['User.Modify', 'Sys.Audit'], true),
        )
        .map(([userid, user]) => ({ userid, enable: Number(user.enable) })),
  },
  {
    method: 'POST',
    path: '/access/users',
    name: 'create_user',
    description: 'Makes a user.',
    params: {
      userid: USERID,
      password: S,
      comment: S,
      enable: { type: 'boolean', optional: true },
      email: S,
      expire: { type: 'integer', optional: true },
    },
    permission: { check: ['/access', ['User.Modify']] },
    returns: 'null',
    run: ({ state, params }) => {
      const userid = String(params.userid)
      if (state.users.has(userid)) die(`create user failed: user '${userid}' already exists`)
      state.users.set(userid, {
        password: params.password === undefined ? undefined : String(params.password),
        enable: params.enable !== false,
        tokens: new Map(),
      })
      return null
    },
  },
  {
    method: 'POST',
    path: '/access/users/{userid}/token/{tokenid}',
    name: 'generate_token',
    description: 'Makes an API token; its value is told once.',
    params: {
      userid: USERID,
      tokenid: { type: 'string' },
      comment: S,
      expire: { type: 'integer', optional: true, minimum: 0 },
      privsep: { type: 'boolean', optional: true },
    },
    permission: { user: 'all' },
    returns: 'object',
    run: context => {
      const user = userOf(context)
      const tokenid = String(context.params.tokenid)
      if (user.tokens.has(tokenid)) throw badParams({ tokenid: 'Token already exists.' })
      const token = { secret: randomUUID(), privsep: context.params.privsep !== false }
      user.tokens.set(tokenid, token)
      return {
        'full-tokenid': `${context.params.userid}!${tokenid}`,
        info: { privsep: Number(token.privsep) },
        value: token.secret,
      }
    },
  },
  {
    method: 'DELETE',
    path: '/access/users/{userid}/token/{tokenid}',
    name: 'remove_token',
    description: 'Revokes an API token.',
    params: { userid: USERID, tokenid: { type: 'string' } },
    permission: { user: 'all' },
    returns: 'null',
    run: context => {
      if (!userOf(context).tokens.delete(String(context.params.tokenid)))
        throw badParams({ tokenid: 'no such token' })
      return null
    },
  },
  {
    method: 'GET',
    path: '/access/roles',
    name: 'index',
    description: 'Lists the roles.',
    params: {},
    permission: { user: 'all' },
    returns: 'array',
    run: ({ state }) => [...state.roles].map(([roleid, privs]) => ({ roleid, privs: [...privs].join(',') })),
  },
  {
    method: 'POST',
    path: '/access/roles',
    name: 'create_role',
    description: 'Makes a role.',
    params: { roleid: { type: 'string' }, privs: S },
    permission: MODIFY,
    returns: 'null',
    run: context => {
      const roleid = String(context.params.roleid)
      if (context.state.roles.has(roleid)) die(`create role failed: role '${roleid}' already exists`)
      context.state.roles.set(roleid, privilegeList(context))
      return null
    },
  },
  {
    method: 'PUT',
    path: '/access/roles/{roleid}',
    name: 'update_role',
    description: 'Changes a role.',
    params: { roleid: { type: 'string' }, privs: S, append: { type: 'boolean', optional: true } },
    permission: MODIFY,
    returns: 'null',
    run: context => {
      const roleid = String(context.params.roleid)
      const before = context.state.roles.get(roleid) ?? die(`role '${roleid}' does not exist`)
      context.state.roles.set(
        roleid,
        new Set([...(context.params.append ? before : []), ...privilegeList(context)]),
      )
      return null
    },
  },
  {
    method: 'GET',
    path: '/access/acl',
    name: 'read_acl',
    description: 'Lists the access rules.',
    params: {},
    permission: { user: 'all' },
    returns: 'array',
    run: ({ state, auth }) =>
      state.acl
        .filter(rule => may(state, auth, rule.path, ['Permissions.Modify', 'Sys.Audit'], true))
        .map(rule => ({
          path: rule.path,
          ugid: rule.who,
          roleid: rule.role,
          propagate: Number(rule.propagate),
          type: rule.who.includes('!') ? 'token' : 'user',
        })),
  },
  {
    method: 'PUT',
    path: '/access/acl',
    name: 'update_acl',
    description: 'Adds or removes access rules.',
    params: {
      path: { type: 'string' },
      roles: { type: 'string' },
      users: S,
      tokens: S,
      groups: S,
      propagate: { type: 'boolean', optional: true },
      delete: { type: 'boolean', optional: true },
    },
    permission: { user: 'all' },
    returns: 'null',
    run: ({ state, auth, params }) => {
      const path = String(params.path)
      check(state, auth, path, ['Permissions.Modify'])
      for (const who of [...list(params.users), ...list(params.tokens)]) {
        for (const role of list(params.roles)) {
          if (!state.roles.has(role)) throw badParams({ roles: `role '${role}' does not exist` })
          state.acl = state.acl.filter(
            rule => !(rule.path === path && rule.who === who && rule.role === role),
          )
          if (!params.delete) state.acl.push({ path, who, role, propagate: params.propagate !== false })
        }
      }
      return null
    },
  },
]

const list = (value: unknown): string[] =>
  String(value ?? '')
    .split(/[\s,;]+/)
    .filter(Boolean)

const privilegeList = ({ state, params }: Context): Set<string> => {
  const known = knownPrivileges(Number(state.version.version.split('.')[0]))
  const privs = list(params.privs)
  const unknown = privs.find(name => !known.includes(name))
  if (unknown !== undefined) throw badParams({ privs: `invalid format - invalid privilege '${unknown}'` })
  return new Set(privs)
}

const userOf = ({ state, auth, params }: Context) => {
  const userid = String(params.userid)
  if (userid !== auth.user) check(state, auth, '/access', ['User.Modify'])
  return state.users.get(userid) ?? die(`no such user ('${userid}')`)
}
