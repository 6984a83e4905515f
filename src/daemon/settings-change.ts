import type { Setting } from '../config/load.ts'

export interface SettingsChange {
  /** The settings in effect. */
  readonly settings: readonly Setting[]
  /** Settings that changed in the file and take effect after a restart. */
  readonly restart: readonly string[]
}

/** Reloading applies the `cluster` section. All other parts of the daemon keep the settings they started with. */
export const settingsChange = (before: readonly Setting[], after: readonly Setting[]): SettingsChange => {
  const others = (all: readonly Setting[]): Setting[] => all.filter(one => !isOfCluster(one))
  const values = (all: readonly Setting[]) => new Map(all.map(one => [one.path, JSON.stringify(one.value)]))
  const [old, next] = [values(others(before)), values(others(after))]
  return {
    settings: [...others(before), ...after.filter(isOfCluster)],
    restart: [...new Set([...old.keys(), ...next.keys()])].filter(path => old.get(path) !== next.get(path)),
  }
}

const isOfCluster = ({ path }: Setting): boolean => path.startsWith('cluster.')
