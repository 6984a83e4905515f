/** `local:iso/a.iso,media=cdrom` as a record; the value without a key goes under `first`. */
export const parseProps = (text: string, first: string): Record<string, string> => {
  const props: Record<string, string> = {}
  for (const part of text.split(',')) {
    if (part === '') continue
    const at = part.indexOf('=')
    if (at < 0) props[first] = part
    else props[part.slice(0, at)] = part.slice(at + 1)
  }
  return props
}

export const printProps = (props: Readonly<Record<string, string | undefined>>, first: string): string =>
  Object.entries(props)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .sort(([a], [b]) => Number(b === first) - Number(a === first))
    .map(([key, value]) => (key === first ? value : `${key}=${value}`))
    .join(',')

export const DRIVE =
  /^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|efidisk0|tpmstate0|unused\d+)$/
