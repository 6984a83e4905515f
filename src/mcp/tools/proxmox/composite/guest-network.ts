import { AppError } from '../../../../jobs/errors.ts'
import type { Args, Composite, RowContext } from '../row-context.ts'
import { formatProps, item, parseProps, propValue, text } from './values.ts'

const MODELS = [
  'virtio',
  'e1000',
  'e1000e',
  'rtl8139',
  'vmxnet3',
  'i82551',
  'i82557b',
  'i82559er',
  'ne2k_isa',
  'ne2k_pci',
  'pcnet',
  'e1000-82540em',
  'e1000-82544gc',
  'e1000-82545em',
]

export const addNetwork: Composite = async (args, context) => {
  if ((await present(args, context)) !== undefined) {
    throw new AppError('conflict', `${String(args.net)} of guest ${String(args.vmid)} exists.`, {
      hint: 'Use action update, or a free number.',
    })
  }
  const props =
    args.type === 'lxc'
      ? new Map([['name', `eth${String(args.net).slice(3)}`]])
      : new Map([[text(args, 'model') ?? 'virtio', text(args, 'macaddr') ?? '']])
  return store(args, context, apply(args, props))
}

/** Keeps all settings that are not given, above all the MAC address, by which the network knows the guest. */
export const updateNetwork: Composite = async (args, context) => {
  const now = await present(args, context)
  if (now === undefined) {
    throw new AppError('not_found', `Guest ${String(args.vmid)} has no ${String(args.net)}.`, {
      hint: 'Use action add.',
    })
  }
  const props = parseProps(now)
  return store(args, context, apply(args, args.type === 'lxc' ? props : withModel(args, props)))
}

export const removeNetwork: Composite = ({ node, type, vmid, net }, { call }) =>
  call('PUT /nodes/{node}/{type}/{vmid}/config', { node, type, vmid, delete: net })

const present = async ({ node, type, vmid, net }: Args, { call }: RowContext) =>
  text(item(await call('GET /nodes/{node}/{type}/{vmid}/config', { node, type, vmid })), String(net))

/** The configuration of a VM has model and MAC as one pair, `virtio=AA:…`, or as `model=` and `macaddr=`. */
const withModel = (args: Args, props: Map<string, string>): Map<string, string> => {
  const pair = [...props.keys()].find(key => MODELS.includes(key))
  const model = text(args, 'model') ?? pair ?? props.get('model') ?? 'virtio'
  const mac = text(args, 'macaddr') ?? (pair && props.get(pair)) ?? props.get('macaddr') ?? ''
  const rest = [...props].filter(([key]) => key !== pair && key !== 'model' && key !== 'macaddr')
  return new Map([[model, mac], ...rest])
}

const apply = (args: Args, props: Map<string, string>): Map<string, string> => {
  const lxc = args.type === 'lxc'
  const wanted: Record<string, string | undefined> = {
    bridge: text(args, 'bridge'),
    tag: text(args, 'vlan'),
    mtu: text(args, 'mtu'),
    rate: text(args, 'rate'),
    firewall: flag(args.firewall),
    link_down: flag(args.link_down),
    ...(lxc
      ? {
          hwaddr: text(args, 'macaddr'),
          ip: text(args, 'ip'),
          gw: text(args, 'gw'),
          ip6: text(args, 'ip6'),
          gw6: text(args, 'gw6'),
        }
      : {}),
  }
  const foreign = (lxc ? ['model'] : ['ip', 'gw', 'ip6', 'gw6']).find(key => args[key] !== undefined)
  if (foreign) {
    const hint = lxc
      ? {}
      : { hint: 'A VM gets addresses from cloud-init: proxmox_guest_config_update with ipconfig0.' }
    throw new AppError('invalid', `'${foreign}' is not for ${lxc ? 'containers' : 'VMs'}.`, hint)
  }
  for (const [key, value] of Object.entries(wanted))
    if (value !== undefined) props.set(key, propValue(key, value))
  return props
}

const store = async ({ node, type, vmid, net }: Args, { call }: RowContext, props: Map<string, string>) => {
  const value = formatProps(props)
  await call('PUT /nodes/{node}/{type}/{vmid}/config', { node, type, vmid, [String(net)]: value })
  return { ok: true, [String(net)]: value }
}

const flag = (value: unknown) => (value === undefined ? undefined : value === true ? '1' : '0')
