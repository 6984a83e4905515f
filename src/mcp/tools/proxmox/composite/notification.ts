import { AppError } from '../../../../jobs/errors.ts'
import type { Args, Composite } from '../row-context.ts'

/** Each kind of target takes settings of its own, and refuses those of the others. */
const SETTINGS: Record<string, { required: readonly string[]; optional: readonly string[] }> = {
  smtp: {
    required: ['server', 'from-address'],
    optional: ['port', 'username', 'password', 'mode', 'mailto', 'mailto-user', 'author'],
  },
  gotify: { required: ['server', 'token'], optional: [] },
  sendmail: { required: [], optional: ['mailto', 'mailto-user', 'from-address', 'author'] },
  webhook: { required: ['url', 'method'], optional: ['header', 'body', 'secret'] },
}
const ALWAYS = ['target_type', 'name', 'comment', 'disable', 'delete', 'digest']
const TOLD_AS: Record<string, string> = { 'from-address': 'from' }

export const createTarget: Composite = (args, { call }) => {
  const missing = check(args).required.find(key => args[key] === undefined)
  if (missing) {
    const name = TOLD_AS[missing] ?? missing
    throw new AppError('invalid', `create of a ${String(args.target_type)} target needs '${name}'.`)
  }
  return call('POST /cluster/notifications/endpoints/{target_type}', args)
}

export const updateTarget: Composite = (args, { call }) => {
  check(args)
  return call('PUT /cluster/notifications/endpoints/{target_type}/{name}', args)
}

const check = (args: Args) => {
  const settings = SETTINGS[String(args.target_type)]!
  const known = [...ALWAYS, ...settings.required, ...settings.optional]
  const foreign = Object.keys(args).find(key => args[key] !== undefined && !known.includes(key))
  if (!foreign) return settings
  throw new AppError(
    'invalid',
    `A ${String(args.target_type)} target takes no '${TOLD_AS[foreign] ?? foreign}'.`,
    {
      hint: `It takes ${known
        .slice(4)
        .concat('comment', 'disable')
        .map(key => TOLD_AS[key] ?? key)
        .join(', ')}.`,
    },
  )
}
