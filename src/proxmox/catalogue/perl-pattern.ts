/** A pattern of Perl as one of ours; undefined when it has no equal, for then the host judges alone. */
export const compilePattern = (perl: string): RegExp | undefined => {
  const insensitive = /\(\?\^[a-z]*i[a-z]*:/.test(perl)
  const source = perl
    .replace(/\(\?\^[a-z]*:/g, '(?:')
    .replace(/\{,(\d+)\}/g, '{0,$1}')
    .replace(/\\A/g, '^')
    .replace(/\\[zZ]/g, '$')
    .replace(/\\h/g, '[ \\t]')
  if (/\(\?[#>+\d&P|]|\\[GKQ]|\[\[:|[*+?}]\+/.test(source)) return undefined
  try {
    // The schema means the whole value, as Proxmox VE anchors it too.
    return new RegExp(`^(?:${source})$`, insensitive ? 'i' : '')
  } catch {
    return undefined
  }
}
