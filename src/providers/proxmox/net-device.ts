import type { NetworkOptions } from './proxmox-provider-options.ts'

/**
 * Returns the network devices of a clone that must change: with the configured network, else that of the template. The
 * MAC address and all other properties are kept: Proxmox VE assigns a new address to a value without one.
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
      // Jobs use the first device; all devices are filtered, so that none bypasses the rules.
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
