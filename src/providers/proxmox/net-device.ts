import type { NetworkOptions } from './proxmox-provider-options.ts'

/**
 * The network devices of a clone as they must be: ours where the settings say so, else as the template has them.
 * The MAC and every other property stay, for a value without a MAC draws a new one. Only what changes is told.
 */
export const netDevices = (
  config: Readonly<Record<string, unknown>>,
  network: NetworkOptions,
): Record<string, string> => {
  const devices = Object.entries(config).filter(([key]) => /^net\d+$/.test(key))
  if (devices.length === 0 && network.bridge !== undefined) devices.push(['net0', 'virtio'])
  const changes = devices.map(([key, value]) => [
    key,
    withProperties(String(value), {
      // The first device is the one that jobs use; filtered are all, or the rules have a way around them.
      ...(key === 'net0' ? { bridge: network.bridge, tag: network.tag, rate: network.rate } : {}),
      ...(network.firewall ? { firewall: 1 } : {}),
    }),
  ])
  return Object.fromEntries(changes.filter(([key, value]) => String(config[key!] ?? '') !== value))
}

/** A property string with some properties set; those that are undefined stay as they are. */
const withProperties = (
  text: string,
  properties: Readonly<Record<string, string | number | undefined>>,
): string => {
  const parts = text.split(',').filter(part => part !== '')
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue
    const at = parts.findIndex(part => part.startsWith(`${name}=`))
    if (at < 0) parts.push(`${name}=${value}`)
    else parts[at] = `${name}=${value}`
  }
  return parts.join(',')
}

/** The network that the first device of a guest is connected to. */
export const bridgeOf = (config: Readonly<Record<string, unknown>>): string | undefined =>
  /(?:^|,)bridge=([^,]+)/.exec(String(config.net0 ?? ''))?.[1]
