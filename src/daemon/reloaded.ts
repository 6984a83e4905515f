import type { Setting } from '../config/load.ts'

export interface Reloaded {
  /** What is in force now. */
  readonly settings: readonly Setting[]
  /** Changed in the file, and in force only after a restart. */
  readonly restart: readonly string[]
}

/** Reading the configuration again takes over the nodes and all about them; whoever else has read it keeps what it read. */
export const reloaded = (before: readonly Setting[], after: readonly Setting[]): Reloaded => {
  const others = (all: readonly Setting[]): Setting[] => all.filter(one => !isOfCluster(one))
  const values = (all: readonly Setting[]) => new Map(all.map(one => [one.path, JSON.stringify(one.value)]))
  const [old, next] = [values(others(before)), values(others(after))]
  return {
    settings: [...others(before), ...after.filter(isOfCluster)],
    restart: [...new Set([...old.keys(), ...next.keys()])].filter(path => old.get(path) !== next.get(path)),
  }
}

const isOfCluster = ({ path }: Setting): boolean => path.startsWith('cluster.')
