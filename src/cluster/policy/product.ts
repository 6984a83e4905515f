/** Every command line the choices allow, up to a bound; past it, all the remaining choices in one line. */
export const product = (choices: readonly string[][][], most: number): string[][] => {
  let argvs: string[][] = [[]]
  for (const options of choices) {
    if (options.length > 1 && argvs.length * options.length <= most) {
      argvs = argvs.flatMap(argv => options.map(fields => [...argv, ...fields]))
      continue
    }
    for (const argv of argvs) for (const fields of options) for (const field of fields) argv.push(field)
  }
  return argvs
}
