import { AppError } from '../../jobs/errors.ts'
import { performSetup, type SetupOptions } from '../../proxmox/cluster-setup.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { isConfigured } from '../../proxmox/proxmox-settings.ts'
import { setupLines } from '../../proxmox/pveum.ts'
import { templateStorages } from '../../proxmox/template-storages.ts'
import type { Context } from '../context.ts'
import { withCluster } from './with-cluster.ts'

/** Without `diskStorages`, setup uses those of the template. */
export type SetupRequest = Omit<SetupOptions, 'diskStorages' | 'major'> &
  Partial<Pick<SetupOptions, 'diskStorages'>>

const USUAL_STORAGES = ['local-lvm']

/** Prints the commands for an administrator and the settings to use afterwards. */
export const printSetup = async (context: Context, request: SetupRequest): Promise<number> => {
  const major = await versionOf(context)
  const lines = setupLines({ ...request, diskStorages: request.diskStorages ?? USUAL_STORAGES, major })
  const then = [
    'Then set these where Deputy runs, with the token value that the third command printed:',
    ...settingsFor(request, '…'),
  ]
  return context.print(`${[...lines, ...then.map(line => `# ${line}`)].join('\n')}\n`)
}

export const applySetup = (context: Context, request: SetupRequest): Promise<number> =>
  withCluster(context, async proxmox => {
    const { major } = await proxmox.version()
    const found = await templateStorages(proxmox, request.template)
    const diskStorages = request.diskStorages ?? found ?? USUAL_STORAGES
    const { steps, secret } = await performSetup(proxmox.request, { ...request, diskStorages, major }).catch(
      (error: unknown) => {
        throw asAdministrator(proxmox, error)
      },
    )
    const next =
      secret === undefined
        ? ['The token exists already; its value cannot be read again.']
        : ['The value of the token is shown only once. Set:', ...settingsFor(request, secret)]
    const missing = `There is no template ${request.template} yet: deputy proxmox template shows how to make one.`
    return context.print(`${[...steps, '', ...(found === undefined ? [missing] : []), ...next].join('\n')}\n`)
  })

/** A missing right here is the administrator's, not the token's: replace the hint. */
const asAdministrator = ({ settings: { credentials } }: Proxmox, error: unknown): unknown =>
  credentials.kind === 'token' && proxmoxDetails(error)?.kind === 'permission'
    ? new AppError('denied', (error as Error).message, {
        hint: 'A token may not do this. As an administrator: PROXMOX_USER=root@pam PROXMOX_PASSWORD=… deputy proxmox setup --apply',
        cause: error,
      })
    : error

/** Privileges of the guest agent were renamed in version 9. Without a connection, assume the newest. */
const versionOf = async (context: Context): Promise<number> => {
  if (!isConfigured(context.env)) return 9
  return withCluster(context, async proxmox => (await proxmox.version()).major).catch(() => 9)
}

const settingsFor = (
  { user, tokenName, template, pool, seedStorage }: SetupRequest,
  secret: string,
): string[] => [
  `export PROXMOX_USER=${user} PROXMOX_TOKEN_NAME=${tokenName} PROXMOX_TOKEN_VALUE=${secret}`,
  `export PROXMOX_POOL=${pool}${seedStorage === undefined ? '' : ` PROXMOX_SEED_STORAGE=${seedStorage}`} DEFAULT_VM_TEMPLATE=${template}`,
  'deputy daemon restart; deputy doctor',
]
