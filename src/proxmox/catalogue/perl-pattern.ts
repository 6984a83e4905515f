/** Converts a Perl pattern to a RegExp; undefined if there is no equivalent, so that only the host checks it. */
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
    // The pattern must match the whole value: Proxmox VE anchors it too.
    return new RegExp(`^(?:${source})$`, insensitive ? 'i' : '')
  } catch {
    return undefined
  }
}
