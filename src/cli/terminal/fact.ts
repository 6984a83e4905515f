import type { Colors } from './colors.ts'
import { wrap } from './wrap.ts'

const NAME_WIDTH = 10

/** One line `name      value`; further lines of the value start below its first one. */
export const fact = (name: string, value: string, { dim }: Colors, width: number): string =>
  `${dim(name.padEnd(NAME_WIDTH))}${wrap(value, width - NAME_WIDTH).replaceAll('\n', `\n${' '.repeat(NAME_WIDTH)}`)}\n`
