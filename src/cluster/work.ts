import { baseName } from './policy/wrappers.ts'

/** A command line as the lists know it: without the version in a program's name, and without what only runs it. */
export const workOf = (argv: readonly string[]): readonly string[] => {
  const program = plainName(argv[0] ?? '')
  const args = argv.slice(1)
  const inner = innerOf(program, args)
  return inner.length > 0 ? workOf(inner) : [program, ...args]
}

/** Whether a program is only asked something: its version, its help, what it knows. */
export const onlyAsks = ([program = '', ...args]: readonly string[]): boolean => {
  if (args.length > 0 && args.every(arg => ASKING_WORDS.has(arg))) return true
  const verb = args.find(arg => !arg.startsWith('-'))
  return verb !== undefined && (ASKING_VERBS.get(program)?.has(verb) ?? false)
}

/** `gcc-12` is gcc, `python3.12` is python3. */
const plainName = (path: string): string =>
  baseName(path)
    .replace(/^(python3?)\d*(?:\.\d+)+$/, '$1')
    .replace(/-\d+(?:\.\d+)*$/, '')

/** The command behind `python3 -m`, `poetry run`, `uv run --group dev`. */
const innerOf = (program: string, args: readonly string[]): readonly string[] => {
  if (/^(?:python[23]?|pypy3?)$/.test(program)) {
    const at = args.indexOf('-m')
    const before = args.slice(0, at)
    return at >= 0 && before.every(arg => arg.startsWith('-')) ? args.slice(at + 1) : []
  }
  const verb = RUNNERS.get(program)
  if (verb === undefined) return []
  const at = verb === '' ? 0 : args.indexOf(verb) + 1
  if (verb !== '' && at === 0) return []
  return behindOptions(args.slice(at))
}

const behindOptions = (args: readonly string[]): readonly string[] => {
  let at = 0
  for (; at < args.length && args[at]!.startsWith('-'); at++) {
    if (args[at] === '--') return args.slice(at + 1)
    if (VALUED.has(args[at]!)) at++
  }
  return args.slice(at)
}

const VALUED = new Set([
  '--with',
  '--group',
  '--extra',
  '--package',
  '--python',
  '-p',
  '--directory',
  '--env-file',
])

const RUNNERS = new Map(
  Object.entries({
    poetry: 'run',
    uv: 'run',
    pipenv: 'run',
    pdm: 'run',
    hatch: 'run',
    rye: 'run',
    bundle: 'exec',
    mise: 'exec',
    xcrun: '',
    ccache: '',
    sccache: '',
    distcc: '',
  }),
)

const ASKING_WORDS = new Set([
  '--version',
  '-version',
  '-V',
  '-v',
  '--help',
  '-h',
  'version',
  'help',
  '--list',
])

const verbs = (text: string): Set<string> => new Set(text.split(' '))

const CONTAINER_VERBS = verbs(
  'ps images logs inspect info version stats top port events diff history search login logout context help',
)
const PACKAGE_VERBS = verbs(
  'ls list ll view info show outdated whoami config help root prefix bin search why explain fund ping docs repo bugs doctor audit',
)

const ASKING_VERBS = new Map(
  Object.entries({
    docker: CONTAINER_VERBS,
    podman: CONTAINER_VERBS,
    nerdctl: CONTAINER_VERBS,
    npm: PACKAGE_VERBS,
    pnpm: PACKAGE_VERBS,
    yarn: PACKAGE_VERBS,
    cargo: verbs('tree metadata search locate-project version help pkgid'),
    kubectl: verbs(
      'get describe logs config version cluster-info explain top api-resources api-versions auth events',
    ),
    bazel: verbs('info version help query cquery'),
  }),
)
