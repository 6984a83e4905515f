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
  'pve-tag-list': list(like(/^[a-z0-9_][a-z0-9_\-+.]*$/i, 'invalid characters in tag')),
  urlencoded: like(/^[-%a-zA-Z0-9_.!~*'()]*$/, 'invalid urlencoded string'),
  'disk-size': like(/^\+?\d+(\.\d+)?[KMGT]?$/, 'value does not match the regex pattern'),
  'pve-qm-net': value => {
    const props = parseProps(value, 'model')
    const model = props.model ?? Object.keys(props).find(key => NET_MODELS.includes(key))
    if (model === undefined || !(NET_MODELS.includes(model) || NET_MODELS.includes(props.model ?? '')))
      return 'format error\nmodel: property is missing and it is not optional'
    const unknown = Object.keys(props).find(key => !NET_KEYS.includes(key) && !NET_MODELS.includes(key))
    if (unknown)
      return `format error\n${unknown}: property is not defined in schema and the schema does not allow additional properties`
    const tag = props.tag
    return tag !== undefined && !(Number(tag) >= 1 && Number(tag) <= 4094)
      ? 'format error\ntag: value must have a maximum value of 4094'
      : undefined
  },
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
