import { matchesPattern } from './command-pattern.ts'
import { commandsOf } from './policy/command-policy.ts'
import { words } from './policy/protected-paths.ts'
import { baseName, isWrapper } from './policy/wrappers.ts'
import { isQuery, underlyingCommand } from './underlying-command.ts'

interface Classification {
  /** Where the command runs unless requirements or load decide otherwise. */
  place: 'local' | 'offload'
  /** The pattern that matched. */
  because: string | undefined
}

interface RoutingLists {
  local?: readonly string[] | undefined
  offload?: readonly string[] | undefined
}

/** Matches the first words of every simple command, never a part of a word or of a quoted text. */
export const classify = (
  source: string,
  lists: RoutingLists = {},
  /** Whether a directory is copied to the node. Without one, commands such as `grep -r` have no files to read there. */
  hasDirectory = true,
): Classification => {
  const local = lists.local ?? DEFAULT_LOCAL
  const offload = lists.offload ?? (hasDirectory ? DEFAULT_OFFLOAD : HEAVY_COMMANDS)
  for (const argv of commandsOf(source)) {
    if (isWrapper(argv[0] ?? '')) continue
    const underlying = underlyingCommand(argv)
    if (
      isQuery(underlying) ||
      local.some(entry => matchesPattern(argv, entry) || matchesPattern(underlying, entry))
    )
      continue
    const because = offload.find(entry => matchesPattern(underlying, entry) || matchesPattern(argv, entry))
    if (because !== undefined) return { place: 'offload', because }
    if (lists.offload === undefined && isTestRun(underlying)) return { place: 'offload', because: 'test' }
  }
  return { place: 'local', because: undefined }
}

/** `rake test`, `./manage.py test`: the word is a subcommand, not a file. */
const isTestRun = ([program = '', subcommand]: readonly string[]): boolean =>
  subcommand === 'test' && !TAKES_FILES.has(baseName(program))

const TAKES_FILES = words(`
  [ awk chmod chown cp diff du export file git grep kill less ln mkdir mv nano pgrep pkill printf rm rmdir
  sed set sort source stat su tee test touch tree unset vi vim wc .`)

const DEFAULT_LOCAL: readonly string[] = ['ls', 'pwd', 'cd', 'echo', 'cat', 'head', 'tail', 'which', 'type']

const HEAVY_COMMANDS: readonly string[] = [
  ...['make', 'gmake', 'cmake', 'ninja', 'meson compile', 'meson test', 'bazel', 'gradle', 'gradlew'],
  ...['mvn', 'mvnw', 'sbt', 'just', 'scons', 'cargo', 'rustc', 'go build', 'go test', 'go install'],
  ...['zig build', 'zig test', 'stack build', 'cabal build', 'mix compile', 'mix test'],
  ...['dotnet build', 'dotnet test', 'swift build', 'swift test', 'swiftc', 'xcodebuild'],
  ...['npm', 'npx', 'yarn', 'pnpm', 'bun test', 'bun run', 'bun build', 'deno test', 'tsc', 'webpack'],
  ...['vite build', 'turbo', 'pytest', 'tox', 'nox', 'jest', 'vitest', 'mocha', 'ctest', 'rspec', 'phpunit'],
  ...['gcc', 'g++', 'cc', 'c++', 'clang', 'clang++', 'javac', 'nvcc', 'ghc'],
  ...['docker', 'podman', 'buildah', 'kubectl', 'nix build', 'nix-build'],
]

/** Heavy only because of the files they read. */
const FILE_COMMANDS: readonly string[] = [
  'rsync',
  'scp',
  'tar',
  'zip',
  'unzip',
  'find',
  'grep -r',
  'grep -R',
  'rg',
]

const DEFAULT_OFFLOAD: readonly string[] = [...HEAVY_COMMANDS, ...FILE_COMMANDS]
