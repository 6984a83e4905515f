import type { Args, Composite, RowContext } from '../row-context.ts'
import { item, items, text, without } from './values.ts'

export const createUser: Composite = (args, { call }) => call('POST /access/users', args)

/** The password is set first, with a separate request: Proxmox refuses it to API tokens, and then nothing is changed. */
export const updateUser: Composite = async (args, { call }) => {
  const { userid, password } = args
  if (password !== undefined) await call('PUT /access/password', { userid, password })
  const rest = without(args, 'password', 'userid')
  if (Object.keys(rest).length > 0) await call('PUT /access/users/{userid}', { userid, ...rest })
  return null
}

export const createGroup: Composite = async ({ groupid, comment, users }, context) => {
  await context.call('POST /access/groups', without({ groupid, comment }))
  await join(groupid, users, context)
  return null
}

export const updateGroup: Composite = async ({ groupid, comment, users, append }, context) => {
  const { call } = context
  if (comment !== undefined) await call('PUT /access/groups/{groupid}', { groupid, comment })
  if (append === false) {
    const members = item(await call('GET /access/groups/{groupid}', { groupid })).members
    const wanted = split(users)
    for (const userid of Array.isArray(members) ? members.map(String) : []) {
      if (!wanted.includes(userid)) await leave(userid, groupid, context)
    }
  }
  await join(groupid, users, context)
  return null
}

/** Membership is a property of the user. */
const join = async (groupid: unknown, users: unknown, { call }: RowContext) => {
  for (const userid of split(users))
    await call('PUT /access/users/{userid}', { userid, groups: groupid, append: true })
}

const leave = async (userid: string, groupid: unknown, { call }: RowContext) => {
  const { groups } = item(await call('GET /access/users/{userid}', { userid }))
  const left = (Array.isArray(groups) ? groups.map(String) : split(groups)).filter(group => group !== groupid)
  await call('PUT /access/users/{userid}', { userid, groups: left.join(','), append: false })
}

const split = (list: unknown): string[] =>
  list === undefined || list === null
    ? []
    : String(list)
        .split(/[,; ]+/)
        .filter(Boolean)

/** Filters here, because the API has no filter. */
export const acl: Composite = async (args: Args, { call }) => {
  const wanted = { path: args.path, roleid: args.roleid }
  return items(await call('GET /access/acl', {})).filter(entry => {
    if (Object.entries(wanted).some(([key, value]) => value !== undefined && text(entry, key) !== value))
      return false
    if (args.userid !== undefined && !(entry.type !== 'group' && text(entry, 'ugid') === args.userid))
      return false
    return args.groupid === undefined || (entry.type === 'group' && text(entry, 'ugid') === args.groupid)
  })
}
