/** The command that a wrapper (`sudo`, `env`, `timeout`…) runs. */
interface Unwrapped {
  readonly argv: readonly string[]
  /** Set when the wrapper passes its command to a shell. */
  readonly script?: string
  /** Whether the command runs as root; undefined when the wrapper does not change the user. */
  readonly root?: boolean
  readonly cwd?: string
  /** `NAME=value` words before the command. */
  readonly assignments: readonly string[]
}

interface Wrapper {
  /** Options that take a value, separated by spaces. */
  readonly values?: string
  /** How many operands precede the command. */
  readonly operands?: number
  readonly assignments?: boolean
  /** Runs the command as root unless one of these options names another user. */
  readonly rootUnless?: string
  readonly cwd?: string
  /** The option whose value is a script. */
  readonly script?: string
  /** Joins the words of the command to a script, as ssh does. */
  readonly joins?: boolean
}

const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  sudo: {
    values: '-u -g -h -p -C -D -R -T -t -r -U --user --group --prompt --chdir',
    assignments: true,
    rootUnless: '-u --user',
    cwd: '-D --chdir',
  },
  doas: { values: '-u -C', rootUnless: '-u' },
  pkexec: { values: '--user', rootUnless: '--user' },
  su: { values: '-c --command -s', operands: 1, script: '-c --command', rootUnless: '' },
  runuser: { values: '-u -g -G -s --user -c --command', script: '-c --command' },
  env: {
    values: '-u -C -S --unset --chdir --split-string',
    assignments: true,
    cwd: '-C --chdir',
    script: '-S --split-string',
  },
  ssh: { values: '-p -i -o -l -F -J -L -R -D -W -b -c -e -I -m -O -Q -S -w -E', operands: 1, joins: true },
  watch: { values: '-n --interval', joins: true },
  flock: { values: '-w -E -c --timeout --command', operands: 1, script: '-c --command' },
  timeout: { values: '-k -s --kill-after --signal', operands: 1 },
  gtimeout: { values: '-k -s --kill-after --signal', operands: 1 },
  nice: { values: '-n --adjustment' },
  ionice: { values: '-c -n -p -P -u' },
  stdbuf: { values: '-i -o -e' },
  time: { values: '-f -o --format --output' },
  strace: { values: '-o -e -p -s -u -E -P' },
  'systemd-run': { values: '-p -u -E -M --unit --property --setenv --uid --gid --slice' },
  exec: { values: '-a' },
  chroot: { operands: 1 },
  nohup: {},
  setsid: {},
  busybox: {},
  command: {},
  builtin: {},
}

export const isWrapper = (program: string): boolean => Object.hasOwn(WRAPPERS, baseName(program))

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Removes the outermost wrapper. */
export const unwrap = (argv: readonly string[]): Unwrapped | undefined => {
  const name = baseName(argv[0] ?? '')
  if (!isWrapper(name)) return undefined
  const wrapper = WRAPPERS[name]!
  const { options, rest } = readOptions(argv.slice(1), words(wrapper.values), wrapper.operands)
  const first = wrapper.assignments ? rest.findIndex(word => !/^[A-Za-z_]\w*=/.test(word)) : 0
  const command = first < 0 ? [] : rest.slice(first)
  const optionOf = (names: string | undefined): string | undefined =>
    words(names)
      .map(option => options.get(option))
      .find(value => value !== undefined)
  const script = optionOf(wrapper.script) ?? (wrapper.joins ? command.join(' ') : undefined)
  const user = optionOf(wrapper.rootUnless)
  const cwd = optionOf(wrapper.cwd)
  return {
    argv: command,
    assignments: rest.slice(0, rest.length - command.length),
    ...(script !== undefined && { script: [script, ...(wrapper.joins ? [] : command)].join(' ') }),
    ...(wrapper.rootUnless !== undefined && { root: user === undefined || user === 'root' || user === '0' }),
    ...(cwd !== undefined && { cwd }),
  }
}

const words = (text: string | undefined): string[] => text?.split(' ') ?? []

/**
 * Reads options and skips `operands` words among them: `su - root -c …`, `flock FILE -c …`. Both `-nu bob` and `-ubob`
 * pass `bob` to `-u`.
 */
export const readOptions = (
  args: readonly string[],
  takesValue: readonly string[],
  operands = 0,
): { options: Map<string, string>; rest: readonly string[] } => {
  const options = new Map<string, string>()
  let at = 0
  let left = operands
  for (; at < args.length; at++) {
    const arg = args[at]!
    if (arg === '--') return { options, rest: args.slice(at + 1 + left) }
    if (arg === '-') continue
    if (!arg.startsWith('-')) {
      if (left-- > 0) continue
      break
    }
    const [long, value] = arg.startsWith('--') ? arg.split(/=(.*)/s) : [arg]
    const exact = takesValue.find(option => option === arg || (isLetters(arg) && option === `-${arg.at(-1)}`))
    const attached = takesValue.find(option => option.length === 2 && arg.startsWith(option))
    if (value !== undefined) options.set(long!, value)
    else if (exact) options.set(exact, args[++at] ?? '')
    else if (attached) options.set(attached, arg.slice(2))
    else options.set(arg, '')
  }
  return { options, rest: args.slice(at) }
}

const isLetters = (arg: string): boolean => /^-[A-Za-z]+$/.test(arg)
