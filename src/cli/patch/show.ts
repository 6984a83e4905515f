import { visible } from '../../jobs/visible-text.ts'
import type { Colors } from '../terminal/colors.ts'

/** Formats a patch in colours, with the job's control sequences made harmless. */
export const showPatch = (text: string, colors: Colors): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map(line => `${paint(line, colors)(visible(line.replaceAll('\t', '    ')))}\n`)
    .join('')

const paint = (line: string, { bold, green, red, cyan }: Colors): ((text: string) => string) => {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|rename |similarity |old mode|new mode)/.test(line))
    return bold
  if (line.startsWith('@@')) return cyan
  if (line.startsWith('+')) return green
  return line.startsWith('-') ? red : text => text
}
