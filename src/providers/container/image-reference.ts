/** The parts of an image name that decide where it comes from and who may use it. */
export interface ImageReference {
  /** `docker.io` where the name has none. */
  readonly registry: string
  /** With the registry, without tag and digest: `docker.io/library/node`. */
  readonly repository: string
  /** A tag or a digest; `latest` where the name has neither. */
  readonly version: string
}

export const parseImage = (name: string): ImageReference => {
  const [, path = name, tag, digest] = /^(.+?)(?::([^:/@]+))?(?:@(sha256:[0-9a-f]+))?$/.exec(name) ?? []
  const first = path.split('/')[0] ?? ''
  const hasRegistry = path.includes('/') && (/[.:]/.test(first) || first === 'localhost')
  const registry = hasRegistry ? first : 'docker.io'
  const rest = hasRegistry ? path.slice(first.length + 1) : path.includes('/') ? path : `library/${path}`
  return { registry, repository: `${registry}/${rest}`, version: digest ?? tag ?? 'latest' }
}

/** The name in full, as engines show it. */
export const fullName = (name: string): string => {
  const { repository, version } = parseImage(name)
  return `${repository}${version.startsWith('sha256:') ? '@' : ':'}${version}`
}

/** Whether a pattern of the configuration covers an image: `*` stands for any text; one without a tag covers all tags. */
export const covers = (pattern: string, name: string): boolean => {
  const long = [fullName(name), parseImage(name).repository]
  // People write images of Docker Hub without its name.
  const short = long.map(form => form.replace(/^docker\.io\/(?:library\/)?/, ''))
  const forms = [name, ...long, ...short]
  return forms.some(form => matches(form, pattern))
}

export const isAllowed = (name: string, patterns: readonly string[]): boolean =>
  patterns.some(pattern => covers(pattern, name))

const matches = (text: string, pattern: string): boolean =>
  new RegExp(`^${pattern.split('*').map(escapeRegExp).join('.*')}$`, 's').test(text)

const escapeRegExp = (text: string): string => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
