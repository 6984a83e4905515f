import { matchesWords } from './match-words.ts'
import { commandsOf } from './policy/check.ts'
import { isWrapper } from './policy/wrappers.ts'
import { onlyAsks, workOf } from './work.ts'

export interface Classification {
  /** Where a command should run when nothing else decides. */
  place: 'local' | 'offload'
  /** The word that decided. */
  because: string | undefined
}

export interface RoutingLists {
  local?: readonly string[] | undefined
  offload?: readonly string[] | undefined
}

/** Decides on the first words of every simple command, never on a piece of a word or of a quoted text. */
export const classify = (
  source: string,
  lists: RoutingLists = {},
  /** Whether a directory goes along: without one there are no files to look through. */
  hasDirectory = true,
): Classification => {
  const local = lists.local ?? DEFAULT_LOCAL
  const offload = lists.offload ?? (hasDirectory ? DEFAULT_OFFLOAD : HEAVY_WORK)
  for (const argv of commandsOf(source)) {
    if (isWrapper(argv[0] ?? '')) continue
    const work = workOf(argv)
    if (onlyAsks(work) || local.some(entry => matchesWords(argv, entry) || matchesWords(work, entry)))
      continue
    const because = offload.find(entry => matchesWords(work, entry) || matchesWords(argv, entry))
    if (because !== undefined) return { place: 'offload', because }
  }
  return { place: 'local', because: undefined }
}

export const DEFAULT_LOCAL: readonly string[] = [
  'ls',
  'pwd',
  'cd',
  'echo',
  'cat',
  'head',
  'tail',
  'which',
  'type',
]

const HEAVY_WORK: readonly string[] = [
  ...['make', 'gmake', 'cmake', 'ninja', 'meson compile', 'meson test', 'bazel', 'gradle', 'gradlew'],
  ...['mvn', 'mvnw', 'sbt', 'just', 'scons', 'cargo', 'rustc', 'go build', 'go test', 'go install'],
  ...['zig build', 'zig test', 'stack build', 'cabal build', 'mix compile', 'mix test'],
  ...['dotnet build', 'dotnet test', 'swift build', 'swift test', 'swiftc', 'xcodebuild'],
  ...['npm', 'npx', 'yarn', 'pnpm', 'bun test', 'bun run', 'bun build', 'deno test', 'tsc', 'webpack'],
  ...['vite build', 'turbo', 'pytest', 'tox', 'nox', 'jest', 'vitest', 'mocha', 'ctest', 'rspec', 'phpunit'],
  ...['gcc', 'g++', 'cc', 'c++', 'clang', 'clang++', 'javac', 'nvcc', 'ghc'],
  ...['docker', 'podman', 'buildah', 'kubectl', 'nix build', 'nix-build'],
]

/** Heavy only by the files it goes through. */
const FILE_WORK: readonly string[] = [
  ...['rsync', 'scp', 'tar', 'zip', 'unzip', 'find', 'grep -r', 'grep -R', 'rg'],
]

export const DEFAULT_OFFLOAD: readonly string[] = [...HEAVY_WORK, ...FILE_WORK]
