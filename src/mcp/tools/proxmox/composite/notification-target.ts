import { AppError } from '../../../../jobs/errors.ts'
import type { Args, Composite } from '../row-context.ts'

/** Each type of target has its own settings; Proxmox refuses others. */
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
const ARGUMENT_NAMES: Record<string, string> = { 'from-address': 'from' }

export const createTarget: Composite = (args, { call }) => {
  const missing = check(args).required.find(key => args[key] === undefined)
  if (missing) {
    const name = ARGUMENT_NAMES[missing] ?? missing
    throw new AppError('invalid', `Creating a ${String(args.target_type)} target needs '${name}'.`)
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
    `A ${String(args.target_type)} target does not take '${ARGUMENT_NAMES[foreign] ?? foreign}'.`,
    {
      hint: `It takes ${known
        .slice(4)
        .concat('comment', 'disable')
        .map(key => ARGUMENT_NAMES[key] ?? key)
        .join(', ')}.`,
    },
  )
}
