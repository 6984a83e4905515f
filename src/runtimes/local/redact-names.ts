interface Named {
  readonly path: string
}

/** File names without secrets: they are shown wherever output is. Names that become equal are numbered. */
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
