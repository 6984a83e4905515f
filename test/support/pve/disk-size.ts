/** Bytes as Proxmox VE writes them: with the largest unit that divides them. */
export const printDiskSize = (bytes: number): string => {
  const [unit, factor] = UNITS.find(([, factor]) => bytes % factor === 0) ?? ['', 1]
  return `${bytes / factor}${unit}`
}

const UNITS = [
  ['T', 2 ** 40],
  ['G', 2 ** 30],
  ['M', 2 ** 20],
  ['K', 2 ** 10],
] as const
