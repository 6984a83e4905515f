/**
 * Artifact globs: `*` and `?` stay within a directory, `**` crosses directories, `[abc]` and `{a,b}` work.
 * A glob without a slash matches at any depth, as in .gitignore: `*.log` finds `logs/build.log`.
 */
export const globMatcher = (globs: readonly string[]): ((path: string) => boolean) => {
  const patterns = globs.map(toRegExp)
  return path => patterns.some(pattern => pattern.test(path))
}

const toRegExp = (glob: string): RegExp => {
  const relative = glob.replace(/^\/work\//, '').replace(/^\.?\//, '')
  const anchored = relative.includes('/') ? relative : `**/${relative}`
  // A directory stands for all that is in it.
  const source = translate(anchored.endsWith('/') ? `${anchored}**` : anchored)
  return new RegExp(`^${source}$`, 's')
}

const translate = (glob: string): string => {
  let out = ''
  let braces = 0
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i]!
    if (char === '*' && glob[i + 1] === '*') {
      const slash = glob[i + 2] === '/'
      out += slash ? '(?:[^/]+/)*' : '.*'
      i += slash ? 2 : 1
    } else if (char === '*') out += '[^/]*'
    else if (char === '?') out += '[^/]'
    else if (char === '{') {
      braces += 1
      out += '(?:'
    } else if (char === '}' && braces > 0) {
      braces -= 1
      out += ')'
    } else if (char === ',' && braces > 0) out += '|'
    else if (char === '[') {
      const end = glob.indexOf(']', i + 2)
      if (end === -1) out += '\\['
      else {
        out += characterClass(glob.slice(i + 1, end))
        i = end
      }
    } else out += char.replace(/[\\^$+.()|{}\]]/g, '\\$&')
  }
  return out + ')'.repeat(braces)
}

const characterClass = (body: string): string => {
  const negated = body.startsWith('!') || body.startsWith('^')
  const members = (negated ? body.slice(1) : body).replace(/[\\\]^[]/g, '\\$&')
  return safeClass(`[${negated ? '^/' : ''}${members}]`)
}

/** `[z-a]` is no class; read it as the literal text instead of failing the job after its run. */
const safeClass = (source: string): string => {
  try {
    new RegExp(source)
    return source
  } catch {
    return source.replace(/[\\^$+.()|{}[\]*?-]/g, '\\$&')
  }
}
