import type { Setting } from '../config/load.ts'

export interface SettingsChange {
  /** The settings in effect. */
  readonly settings: readonly Setting[]
  /** Settings that changed in the file and take effect after a restart. */
  readonly restart: readonly string[]
}

/** Reloading applies the `cluster` section and `host.allow`. All other parts of the daemon keep their settings. */
export const settingsChange = (before: readonly Setting[], after: readonly Setting[]): SettingsChange => {
  const others = (all: readonly Setting[]): Setting[] => all.filter(setting => !isReloaded(setting))
  const values = (all: readonly Setting[]) =>
    new Map(all.map(({ path, value }) => [path, JSON.stringify(value)]))
  const [old, next] = [values(others(before)), values(others(after))]
  return {
    settings: [...others(before), ...after.filter(isReloaded)],
    restart: [...new Set([...old.keys(), ...next.keys()])].filter(path => old.get(path) !== next.get(path)),
  }
}

const isReloaded = ({ path }: Setting): boolean => path.startsWith('cluster.') || path === 'host.allow'
