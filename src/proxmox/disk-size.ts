const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }

/** Parses a size as Proxmox VE writes it (`32G`, `528K`, `1.5T`, or without a unit) to bytes. 0 for anything else. */
export const parseDiskSize = (text: string): number => {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text)
  return match ? Math.round(Number(match[1]) * UNITS[match[2]!]!) : 0
}
