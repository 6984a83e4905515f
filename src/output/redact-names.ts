interface Named {
  readonly path: string
}

/** Redacts secrets in file names, which are shown like output. Names that become equal get a number. */
export const redactNames = <T extends Named>(files: readonly T[], redact: (text: string) => string): T[] => {
  const taken = new Set(files.map(file => file.path))
  return files.map(file => {
    const clean = redact(file.path)
    if (clean === file.path) return file
    let path = clean
    for (let count = 2; taken.has(path); count++) path = `${clean}-${count}`
    taken.add(path)
    return { ...file, path }
  })
}
