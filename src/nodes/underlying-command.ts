import { baseName } from './policy/wrappers.ts'

/** The command that does the work: `python3 -m pytest` and `poetry run pytest` become `pytest`, `gcc-12` becomes `gcc`. */
export const underlyingCommand = (argv: readonly string[]): readonly string[] => {
  const program = withoutVersion(argv[0] ?? '')
  const args = argv.slice(1)
  const inner = innerCommand(program, args)
  return inner.length > 0 ? underlyingCommand(inner) : [program, ...args]
}

/** Whether the command only shows information: `make --version`, `docker ps`. */
export const isQuery = ([program = '', ...args]: readonly string[]): boolean => {
  if (args.length > 0 && args.every(arg => QUERY_ARGUMENTS.has(arg))) return true
  const subcommand = args.find(arg => !arg.startsWith('-'))
  return subcommand !== undefined && (QUERY_SUBCOMMANDS.get(program)?.has(subcommand) ?? false)
}

/** `gcc-12` becomes `gcc`, `python3.12` becomes `python3`. */
const withoutVersion = (path: string): string =>
  baseName(path)
    .replace(/^(python3?)\d*(?:\.\d+)+$/, '$1')
    .replace(/-\d+(?:\.\d+)*$/, '')

/** The command after `python3 -m`, `poetry run`, `uv run --group dev`; empty for other programs. */
const innerCommand = (program: string, args: readonly string[]): readonly string[] => {
  if (/^(?:python[23]?|pypy3?)$/.test(program)) {
    const at = args.indexOf('-m')
    const before = args.slice(0, at)
    return at >= 0 && before.every(arg => arg.startsWith('-')) ? args.slice(at + 1) : []
  }
  const subcommand = LAUNCHERS.get(program)
  if (subcommand === undefined) return []
  const at = subcommand === '' ? 0 : args.indexOf(subcommand) + 1
  if (subcommand !== '' && at === 0) return []
  return afterOptions(args.slice(at))
}

const afterOptions = (args: readonly string[]): readonly string[] => {
  let at = 0
  for (; at < args.length && args[at]!.startsWith('-'); at++) {
    if (args[at] === '--') return args.slice(at + 1)
    if (OPTIONS_WITH_VALUE.has(args[at]!)) at++
  }
  return args.slice(at)
}

const OPTIONS_WITH_VALUE = new Set([
  '--with',
  '--group',
  '--extra',
  '--package',
  '--python',
  '-p',
  '--directory',
  '--env-file',
])

const LAUNCHERS = new Map(
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

const QUERY_ARGUMENTS = new Set([
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

const words = (text: string): Set<string> => new Set(text.split(' '))

const CONTAINER_QUERIES = words(
  'ps images logs inspect info version stats top port events diff history search login logout context help',
)
const PACKAGE_QUERIES = words(
  'ls list ll view info show outdated whoami config help root prefix bin search why explain fund ping docs repo bugs doctor audit',
)

const QUERY_SUBCOMMANDS = new Map(
  Object.entries({
    docker: CONTAINER_QUERIES,
    podman: CONTAINER_QUERIES,
    nerdctl: CONTAINER_QUERIES,
    npm: PACKAGE_QUERIES,
    pnpm: PACKAGE_QUERIES,
    yarn: PACKAGE_QUERIES,
    cargo: words('tree metadata search locate-project version help pkgid'),
    kubectl: words(
      'get describe logs config version cluster-info explain top api-resources api-versions auth events',
    ),
    bazel: words('info version help query cquery'),
  }),
)
