import { baseName } from './text.ts'

/** What remains of a command line when the program in front only changes how the rest is run. */
export interface Unwrapped {
  argv: string[]
  /** The rest runs as root: true or false when the wrapper decides, undefined when it does not. */
  root?: boolean
  /** The rest is one string for a shell. */
  script?: string
  /** Where the rest runs. */
  cwd?: string
  /** `NAME=value` words before the command. */
  variables: readonly string[]
}

interface Wrapper {
  /** Options that take the next word. */
  values?: readonly string[]
  /** Words of the wrapper's own before the command. */
  positional?: number
  assignments?: boolean
  root?: (options: ReadonlyMap<string, string>) => boolean
  /** Option whose value is a shell script. */
  script?: readonly string[]
  /** The words are joined and given to a shell. */
  joins?: boolean
  /** Options whose value is the working directory. */
  directory?: readonly string[]
}

export const unwrap = (argv: readonly string[]): Unwrapped | undefined => {
  const name = baseName(argv[0] ?? '')
  const wrapper = WRAPPERS.get(name)
  if (!wrapper) return undefined
  const options = new Map<string, string>()
  const variables: string[] = []
  let at = 1
  for (; at < argv.length; at++) {
    const arg = argv[at]!
    if (arg === '--') {
      at++
      break
    }
    if (wrapper.assignments && ASSIGNMENT.test(arg)) {
      variables.push(arg)
      continue
    }
    if (!arg.startsWith('-') || arg === '-') break
    const equals = arg.indexOf('=')
    if (arg.startsWith('--') && equals > 0) options.set(arg.slice(0, equals), arg.slice(equals + 1))
    else if (takesNext(wrapper, arg)) options.set(optionKey(wrapper, arg), argv[++at] ?? '')
    else options.set(...attachedValue(wrapper, arg))
  }
  at += wrapper.positional ?? 0
  while (wrapper.assignments && ASSIGNMENT.test(argv[at] ?? '')) variables.push(argv[at++]!)
  const rest = argv.slice(at)
  const root = wrapper.root?.(options)
  const scriptOption = wrapper.script?.find(name => options.has(name))
  const script = scriptOption
    ? [options.get(scriptOption), ...rest].join(' ')
    : wrapper.joins
      ? rest.join(' ')
      : undefined
  const cwd = wrapper.directory?.map(name => options.get(name)).find(value => value !== undefined)
  return {
    argv: rest,
    variables,
    ...(cwd !== undefined && { cwd }),
    ...(root !== undefined && { root }),
    ...(script !== undefined && { script }),
  }
}

const ASSIGNMENT = /^[A-Za-z_]\w*=/

/** `-nu` takes the next word when `-u` does. */
const takesNext = (wrapper: Wrapper, arg: string): boolean =>
  wrapper.values?.some(
    name => arg === name || (isCluster(arg) && name.length === 2 && arg.endsWith(name[1]!)),
  ) ?? false

const optionKey = (wrapper: Wrapper, arg: string): string =>
  wrapper.values?.find(name => arg === name) ?? `-${arg.at(-1)}`

const attachedValue = (wrapper: Wrapper, arg: string): [string, string] => {
  const name = wrapper.values?.find(option => option.length === 2 && arg.startsWith(option))
  return name ? [name, arg.slice(2)] : [arg, '']
}

const isCluster = (arg: string): boolean => /^-[A-Za-z]{2,}$/.test(arg)

const rootUnless =
  (...names: string[]) =>
  (options: ReadonlyMap<string, string>): boolean => {
    const user = names.map(name => options.get(name)).find(value => value !== undefined)
    return user === undefined || user === 'root' || user === '#0' || user === '0'
  }

const WRAPPERS = new Map(
  Object.entries<Wrapper>({
    sudo: {
      values: [
        '-u',
        '-g',
        '-h',
        '-p',
        '-C',
        '-D',
        '-R',
        '-T',
        '-t',
        '-r',
        '-U',
        '--user',
        '--group',
        '--prompt',
        '--chdir',
      ],
      assignments: true,
      directory: ['-D', '--chdir'],
      root: rootUnless('-u', '--user'),
    },
    doas: { values: ['-u', '-C'], root: rootUnless('-u') },
    pkexec: { values: ['--user'], root: rootUnless('--user') },
    run0: { values: ['-u', '--user', '-D', '--chdir'], root: rootUnless('-u', '--user') },
    gosu: { positional: 1 },
    'su-exec': { positional: 1 },
    setpriv: { values: ['--reuid', '--regid', '--groups'] },
    runuser: { values: ['-u', '-g', '-G', '-s', '--user', '-c', '--command'], script: ['-c', '--command'] },
    env: {
      values: ['-u', '-C', '-S', '--unset', '--chdir', '--split-string'],
      assignments: true,
      directory: ['-C', '--chdir'],
      script: ['-S', '--split-string'],
    },
    nice: { values: ['-n', '--adjustment'] },
    ionice: { values: ['-c', '-n', '-p', '-P', '-u'] },
    nohup: {},
    setsid: {},
    timeout: { values: ['-k', '-s', '--kill-after', '--signal'], positional: 1 },
    gtimeout: { values: ['-k', '-s', '--kill-after', '--signal'], positional: 1 },
    time: { values: ['-f', '-o', '--format', '--output'] },
    stdbuf: { values: ['-i', '-o', '-e'] },
    chrt: { positional: 1 },
    taskset: { positional: 1 },
    numactl: {},
    prlimit: {},
    cgexec: { values: ['-g'] },
    unshare: { values: ['-S', '-G', '-R', '-w'] },
    nsenter: { values: ['-t', '-S', '-G', '--target'] },
    chroot: { positional: 1 },
    proot: { values: ['-r', '-b', '-w', '-R', '-S'] },
    fakeroot: {},
    busybox: {},
    toybox: {},
    command: {},
    builtin: {},
    exec: { values: ['-a'] },
    caffeinate: { values: ['-t', '-w'] },
    strace: { values: ['-o', '-e', '-p', '-s', '-u', '-E', '-P'] },
    ltrace: { values: ['-o', '-e', '-p', '-s', '-u', '-n'] },
    'systemd-run': {
      values: ['-p', '-u', '-E', '-M', '--unit', '--property', '--setenv', '--uid', '--gid', '--slice'],
    },
    'systemd-inhibit': {},
    eatmydata: {},
    catchsegv: {},
    chpst: {
      values: ['-u', '-U', '-/', '-e', '-n', '-l', '-L', '-m', '-d', '-o', '-p', '-f', '-c', '-t', '-b'],
    },
    gdb: { values: ['-x', '-ex', '-p', '-c', '-d', '-s', '-e'] },
    valgrind: {},
    perf: { positional: 1 },
    unbuffer: {},
    faketime: { positional: 1 },
    'xvfb-run': { values: ['-n', '-s', '-e', '-f', '-w', '-p'] },
    'dbus-run-session': {},
    arch: {},
    flock: { values: ['-w', '-E', '-c', '--timeout', '--command'], positional: 1 },
    watch: { values: ['-n', '-d', '--interval'], joins: true },
    entr: {},
  }),
)

export const isWrapper = (name: string): boolean => WRAPPERS.has(baseName(name))
