/** Looks up a key that a user chose. `constructor` and other prototype members are not found. */
export const ownProperty = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined
