import { ownProperty } from '../jobs/own-property.ts'
import { normalizeArch, normalizeOs } from './platform.ts'

export interface Requirements {
  os?: string | undefined
  arch?: string | undefined
  capabilities?: readonly string[] | undefined
  labels?: Readonly<Record<string, string>> | undefined
}

/** Properties of a node, from the configuration and from its last probe. */
export interface Traits {
  os: string | undefined
  arch: string | undefined
  capabilities: ReadonlySet<string>
  labels: Readonly<Record<string, string>>
}

export interface CompiledRequirements {
  os: string | undefined
  arch: string | undefined
  capabilities: readonly string[]
  labels: readonly (readonly [string, string])[]
  empty: boolean
}

export const compileRequirements = (requirements: Requirements): CompiledRequirements => {
  const os = requirements.os ? normalizeOs(requirements.os) : undefined
  const arch = requirements.arch ? normalizeArch(requirements.arch) : undefined
  const capabilities = (requirements.capabilities ?? [])
    .map(name => name.trim().toLowerCase())
    .filter(Boolean)
  const labels = Object.entries(requirements.labels ?? {})
  return {
    os,
    arch,
    capabilities,
    labels,
    empty: !os && !arch && capabilities.length === 0 && labels.length === 0,
  }
}

/** The first requirement that a node does not meet, as a clause: "runs linux". Undefined when it meets all. */
export const firstUnmet = (wanted: CompiledRequirements, traits: Traits): string | undefined => {
  if (wanted.os !== undefined && traits.os !== wanted.os) return `runs ${traits.os ?? 'an unknown system'}`
  if (wanted.arch !== undefined && traits.arch !== wanted.arch)
    return `is ${traits.arch ?? 'of unknown architecture'}`
  for (const name of wanted.capabilities) if (!traits.capabilities.has(name)) return `has no ${name}`
  for (const [key, value] of wanted.labels) {
    const held = ownProperty(traits.labels, key)
    if (held !== value) return `has ${key}=${held ?? '(nothing)'}`
  }
  return undefined
}

export const describeRequirements = (wanted: CompiledRequirements): string =>
  [
    wanted.os && `os=${wanted.os}`,
    wanted.arch && `arch=${wanted.arch}`,
    ...wanted.capabilities.map(name => `capability=${name}`),
    ...wanted.labels.map(([key, value]) => `${key}=${value}`),
  ]
    .filter(Boolean)
    .join(', ')
