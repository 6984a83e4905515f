import { AppError } from '../jobs/errors.ts'
import { type Environment, readVariable } from './env-variables.ts'

/** Secrets are functions, so that logging or serialising the settings cannot reveal them. */
export type Credentials =
  | {
      readonly kind: 'token'
      readonly user: string
      readonly tokenName: string
      readonly id: string
      readonly secret: () => string
    }
  | { readonly kind: 'ticket'; readonly user: string; readonly password: () => string }

const TOKEN_NAMES = ['PROXMOX_TOKEN_ID', 'PROXMOX_API_TOKEN_ID', 'PROXMOX_TOKEN_NAME'] as const
const SECRET_NAMES = ['PROXMOX_TOKEN_VALUE', 'PROXMOX_TOKEN_SECRET', 'PROXMOX_API_TOKEN_SECRET'] as const
/** The name may contain another `@`: in some realms it is a mail address. */
const USER = /^[^\s:/!]+@[A-Za-z][A-Za-z0-9.\-_]+$/
const TOKEN = /^[A-Za-z][A-Za-z0-9.\-_]+$/

export const parseCredentials = (env: Environment): Credentials => {
  const given = readVariable(env, 'PROXMOX_USER', 'PROXMOX_USERNAME')
  const value = splitValue(readVariable(env, ...SECRET_NAMES))
  const id = splitId(readVariable(env, ...TOKEN_NAMES) ?? value.id)
  const [user, fromUser] = given?.split('!') ?? []
  const tokenName = id?.name ?? fromUser

  if (tokenName !== undefined || value.secret !== undefined) {
    return token({ user, tokenUser: id?.user, tokenName, secret: value.secret })
  }
  const password = env.PROXMOX_PASSWORD
  if (password) return { kind: 'ticket', user: checkUser(user), password: () => password }
  throw new AppError('invalid', 'No Proxmox VE credentials are set.', {
    hint: 'Set PROXMOX_USER, PROXMOX_TOKEN_NAME and PROXMOX_TOKEN_VALUE (or PROXMOX_USER and PROXMOX_PASSWORD).',
  })
}

/** Removes the token if there is a password: cluster setup needs a user with a password. */
export const withoutToken = (env: Environment): Environment =>
  env.PROXMOX_PASSWORD
    ? {
        ...Object.fromEntries(
          Object.entries(env).filter(
            ([name]) => ![...TOKEN_NAMES, ...SECRET_NAMES].some(one => one === name),
          ),
        ),
        PROXMOX_USER: readVariable(env, 'PROXMOX_USER', 'PROXMOX_USERNAME')?.split('!')[0],
      }
    : env

interface Parts {
  user: string | undefined
  tokenUser: string | undefined
  tokenName: string | undefined
  secret: string | undefined
}

const token = ({ user, tokenUser, tokenName, secret }: Parts): Credentials => {
  if (tokenName === undefined) {
    throw new AppError('invalid', 'A Proxmox VE token value is set, but no token name.', {
      hint: 'Set PROXMOX_TOKEN_NAME to the part after the "!" (or PROXMOX_TOKEN_ID=user@realm!name).',
    })
  }
  if (secret === undefined) {
    throw new AppError('invalid', `The Proxmox VE token "${tokenName}" has no value.`, {
      hint: 'Set PROXMOX_TOKEN_VALUE; Proxmox VE shows it once, when the token is created.',
    })
  }
  if (tokenUser !== undefined && user !== undefined && tokenUser !== user) {
    throw new AppError('invalid', `PROXMOX_USER is "${user}", but the token belongs to "${tokenUser}".`, {
      hint: 'Unset PROXMOX_USER, or set it to the owner of the token.',
    })
  }
  if (!TOKEN.test(tokenName)) {
    throw new AppError('invalid', `Invalid Proxmox VE token name "${tokenName}".`, {
      hint: 'Use the part after the "!" in the token ID, such as "deputy" in deputy@pve!deputy.',
    })
  }
  if (/[\s\r\n]/.test(secret)) {
    throw new AppError('invalid', 'The Proxmox VE token value contains white space.', {
      hint: 'It is a UUID of 36 characters; copy it again.',
    })
  }
  const owner = checkUser(tokenUser ?? user)
  return { kind: 'token', user: owner, tokenName, id: `${owner}!${tokenName}`, secret: () => secret }
}

const DEFAULT_USER = 'root@pam'

const checkUser = (user = DEFAULT_USER): string => {
  if (USER.test(user)) return user
  throw new AppError('invalid', `Invalid PROXMOX_USER "${user}".`, {
    hint: user.includes('@') ? 'Write it as name@realm.' : `Add the realm: ${user}@pve or ${user}@pam`,
  })
}

const splitId = (text: string | undefined) => {
  if (text === undefined) return undefined
  const at = text.lastIndexOf('!')
  return at < 0 ? { user: undefined, name: text } : { user: text.slice(0, at), name: text.slice(at + 1) }
}

/** Also accepts the complete header, `PVEAPIToken=user@realm!name=uuid`, because users copy it. */
const splitValue = (text: string | undefined): { id?: string; secret: string | undefined } => {
  const match = /^(?:PVEAPIToken[= ])?([^=!\s]+![^=\s]+)=(\S+)$/.exec(text ?? '')
  return match ? { id: match[1]!, secret: match[2] } : { secret: text }
}
