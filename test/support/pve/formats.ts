import { parseProps } from './properties.ts'

/** Why a value is not of a format, in Proxmox's words; undefined when it is, or when the format is not checked here. */
export const checkFormat = (format: string, value: string): string | undefined => FORMATS[format]?.(value)

type Check = (value: string) => string | undefined

const like =
  (pattern: RegExp, words: string): Check =>
  value =>
    pattern.test(value) ? undefined : words.replace('%s', value)

const list =
  (check: Check): Check =>
  value =>
    value
      .split(/[\s,;]+/)
      .filter(one => one !== '')
      .map(check)
      .find(problem => problem !== undefined)

const BIT = like(/^[01]$/, "type check ('boolean') failed - got '%s'")
const NODE = like(/^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/, 'value does not look like a valid node name')
const CONFIG_ID = like(/^[a-z][a-z0-9_-]+$/i, "invalid configuration ID '%s'")
const STORAGE = like(/^[a-z][a-z0-9\-_.]*[a-z0-9]$/i, "storage ID '%s' contains illegal characters")

const FORMATS: Readonly<Record<string, Check>> = {
  'pve-vmid': like(/^[1-9][0-9]{2,8}$/, 'value does not look like a valid VM ID'),
  'pve-node': NODE,
  'pve-configid': CONFIG_ID,
  'pve-configid-list': list(CONFIG_ID),
  'pve-storage-id': STORAGE,
  'pve-poolid': like(
    /^[A-Za-z0-9][A-Za-z0-9.\-_]*(\/[A-Za-z0-9][A-Za-z0-9.\-_]*){0,2}$/,
    'value does not look like a valid pool name',
  ),
  'pve-userid': like(
    /^[^\s:/!]+@[A-Za-z][A-Za-z0-9.\-_]+$/,
    "value '%s' does not look like a valid user name",
  ),
  'dns-name': like(
    /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/,
    'value does not look like a valid DNS name',
  ),
  'pve-tag-list': list(like(/^[a-z0-9_][a-z0-9_\-+.]*$/, 'invalid characters in tag')),
  urlencoded: like(/^[-%a-zA-Z0-9_.!~*'()]*$/, 'invalid urlencoded string'),
  'disk-size': like(/^\+?\d+(\.\d+)?[KMGT]?$/, 'value does not match the regex pattern'),
  'pve-qm-net': value => {
    const props = parseProps(value, 'model')
    const model = props.model ?? Object.keys(props).find(key => NET_MODELS.includes(key))
    if (model === undefined || !(NET_MODELS.includes(model) || NET_MODELS.includes(props.model ?? '')))
      return 'format error\nmodel: property is missing and it is not optional'
    const unknown = Object.keys(props).find(key => !NET_KEYS.includes(key) && !NET_MODELS.includes(key))
    if (unknown) return undefinedKey(unknown)
    return properties(props, {
      tag: whole(1, 4094),
      mtu: whole(1, 65_520),
      queues: whole(0, 64),
      firewall: BIT,
      link_down: BIT,
      rate: like(/^\d+(\.\d+)?$/, "type check ('number') failed - got '%s'"),
    })
  },
  'pve-qm-drive': value => {
    const props = parseProps(value, 'file')
    if (props.file === undefined) return 'format error\nfile: property is missing and it is not optional'
    return properties(props, {
      file: like(
        /^(none|cdrom|[^:,\s]+:[^,\s]+|\/[^,\s]+)$/,
        "invalid format - unable to parse volume ID '%s'",
      ),
      media: like(/^(cdrom|disk)$/, "value '%s' does not have a value in the enumeration 'cdrom, disk'"),
      size: like(/^\d+(\.\d+)?[KMGT]?$/, 'value does not match the regex pattern'),
    })
  },
  'pve-qm-agent': value => {
    const props = parseProps(value, 'enabled')
    const unknown = Object.keys(props).find(key => !AGENT_KEYS.includes(key))
    if (unknown) return undefinedKey(unknown)
    if (props.enabled === undefined)
      return 'format error\nenabled: property is missing and it is not optional'
    return properties(props, { enabled: BIT, type: like(/^(virtio|isa)$/, "value '%s' is unknown") })
  },
  'pve-qm-memory': value => properties(parseProps(value, 'current'), { current: whole(16) }),
  'pve-fw-addr-spec': list(
    like(/^([\da-fA-F.:]+(\/\d{1,3}|-[\da-fA-F.:]+)?|\+?[A-Za-z][\w/-]*)$/, "invalid address '%s'"),
  ),
  'pve-fw-dport-spec': list(like(/^(\d{1,5}(:\d{1,5})?|[a-z][\w-]*)$/i, "invalid port '%s'")),
  'pve-fw-protocol-spec': like(
    /^(tcp|udp|icmp|icmpv6|ipv6-icmp|esp|gre|sctp|\d{1,3})$/,
    "unknown protocol '%s'",
  ),
  'pve-qm-smbios1': value => {
    const props = parseProps(value, '')
    for (const [key, text] of Object.entries(props)) {
      if (!SMBIOS_KEYS.includes(key))
        return `format error\n${key}: property is not defined in schema and the schema does not allow additional properties`
      if (
        key === 'uuid'
          ? !/^[a-fA-F0-9]{8}(-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}$/.test(text)
          : key === 'base64'
            ? !/^[01]$/.test(text)
            : !/^[A-Za-z0-9+/]+={0,2}$/.test(text)
      ) {
        return `format error\n${key}: value does not match the regex pattern`
      }
    }
    return undefined
  },
}

/** The first property that is wrong, as the parser of property strings tells it. */
const properties = (
  props: Readonly<Record<string, string>>,
  checks: Readonly<Record<string, Check>>,
): string | undefined => {
  for (const [key, check] of Object.entries(checks)) {
    const problem = props[key] === undefined ? undefined : check(props[key])
    if (problem !== undefined) return `format error\n${key}: ${problem}`
  }
  return undefined
}

const whole =
  (minimum: number, maximum = Number.POSITIVE_INFINITY): Check =>
  value => {
    if (!/^\d+$/.test(value)) return `type check ('integer') failed - got '${value}'`
    if (Number(value) < minimum) return `value must have a minimum value of ${minimum}`
    return Number(value) > maximum ? `value must have a maximum value of ${maximum}` : undefined
  }

const undefinedKey = (key: string): string =>
  `format error\n${key}: property is not defined in schema and the schema does not allow additional properties`

const AGENT_KEYS = [
  'enabled',
  'type',
  'freeze-fs',
  'freeze-fs-on-backup',
  'guest-fsfreeze',
  'fstrim_cloned_disks',
]
const NET_MODELS = ['virtio', 'e1000', 'e1000e', 'rtl8139', 'vmxnet3']
const NET_KEYS = [
  'model',
  'bridge',
  'firewall',
  'tag',
  'rate',
  'link_down',
  'mtu',
  'queues',
  'macaddr',
  'trunks',
]
const SMBIOS_KEYS = ['uuid', 'manufacturer', 'product', 'version', 'serial', 'sku', 'family', 'base64']
