import { visible } from '../jobs/visible-text.ts'
import type { Check, Readiness } from '../ports.ts'
import type { Colors } from './terminal/colors.ts'
import { wrap } from './terminal/wrap.ts'

const INDENT = 6

/** Formats the checks of doctor. `width`: where messages break; fixes are commands to copy, so they stay whole. */
export const doctorReport = (
  checks: readonly Check[],
  runtimes: readonly Readiness[],
  colors: Colors,
  width: number,
): string => {
  const sections = [
    section(colors.bold('this computer'), checks, colors, width),
    ...merged(runtimes).map(({ runtime, ready, checks: found }) => {
      const state = ready ? colors.green('ready') : colors.yellow('not ready')
      return section(`${colors.bold(runtime)} ${state}`, found, colors, width)
    }),
  ]
  const ready = runtimes.filter(runtime => runtime.ready).map(({ runtime }) => runtime)
  const end =
    ready.length > 0
      ? `Jobs can run: ${ready.join(', ')}. Try: deputy run -- echo hello\n`
      : `${colors.red('No runtime can take jobs.')} Apply the fixes above, then run deputy doctor again.\n`
  return `${sections.join('\n')}\n${end}${more(runtimes, colors)}`
}

/** Providers on the same machines report the same checks; show them once. */
const merged = (runtimes: readonly Readiness[]): Readiness[] => {
  const sections: Readiness[] = []
  for (const next of runtimes) {
    const at = sections.findIndex(
      ({ ready, checks }) => ready === next.ready && next.checks.some(check => checks.some(same(check))),
    )
    const twin = sections[at]
    if (twin === undefined) {
      sections.push(next)
      continue
    }
    const news = next.checks.filter(check => !twin.checks.some(same(check)))
    sections[at] = {
      ...twin,
      runtime: `${twin.runtime}, ${next.runtime}`,
      checks: [...twin.checks, ...news],
    }
  }
  return sections
}

const same = (one: Check) => (other: Check) => line(one) === line(other)
const line = ({ name, status, message }: Check): string => `${status} ${name}: ${message}`

const section = (heading: string, checks: readonly Check[], colors: Colors, width: number): string =>
  `${heading}\n${checks.map(check => describe(check, colors, width)).join('')}`

const describe = ({ name, status, message, fix }: Check, colors: Colors, width: number): string => {
  const mark = { ok: colors.green('✓'), warning: colors.yellow('!'), failed: colors.red('✗') }[status]
  const shown = wrap(`${visible(name)}: ${message}`, width - INDENT).split('\n')
  const finding = `  ${mark} ${shown.map(visible).join(`\n${' '.repeat(INDENT)}`)}\n`
  if (fix === undefined) return finding
  // Start a multi-line fix on its own line, so that it can be copied.
  return `${finding}    ${colors.dim('fix:')}${fix.includes('\n') ? `\n      ${indented(fix)}` : ` ${visible(fix)}`}\n`
}

const indented = (text: string): string => text.split('\n').map(visible).join('\n      ')

/** Providers that are not configured yet. */
const more = (runtimes: readonly Readiness[], colors: Colors): string => {
  if (runtimes.length === 0) return ''
  const known = new Set(runtimes.map(({ runtime }) => runtime))
  return [
    ['microvm', 'a VM for each job on this computer: deputy microvm setup'],
    ['proxmox', 'a VM for each job on a cluster: deputy proxmox --help'],
    ['ssh', 'machines of your own: deputy nodes add user@host'],
  ]
    .filter(([runtime]) => !known.has(runtime!))
    .map(([runtime, how]) => colors.dim(`Not set up: ${runtime}, ${how}\n`))
    .join('')
}
