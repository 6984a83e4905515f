import { matchesWords } from './policy/check.ts'
import { interpret, Refused } from './policy/interpret.ts'
import { createScope } from './policy/scope.ts'
import { isWrapper } from './policy/wrappers.ts'

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
export const classify = (source: string, lists: RoutingLists = {}): Classification => {
  const local = lists.local ?? DEFAULT_LOCAL
  const offload = lists.offload ?? DEFAULT_OFFLOAD
  let because: string | undefined
  const look = (argv: readonly string[]): undefined => {
    if (because !== undefined || isWrapper(argv[0] ?? '') || local.some(entry => matchesWords(argv, entry)))
      return
    because = offload.find(entry => matchesWords(argv, entry))
  }
  try {
    interpret(source, createScope({ root: false, env: {}, cwd: undefined }), {
      command: look,
      enabled: () => false,
    })
  } catch (error) {
    // Too tangled to read: it stays where it was asked for.
    if (!(error instanceof Refused)) throw error
  }
  return because === undefined ? { place: 'local', because: undefined } : { place: 'offload', because }
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

export const DEFAULT_OFFLOAD: readonly string[] = [
  'make',
  'gmake',
  'cmake',
  'ninja',
  'meson compile',
  'bazel',
  'gradle',
  'gradlew',
  'mvn',
  'mvnw',
  'cargo',
  'rustc',
  'go build',
  'go test',
  'go install',
  'dotnet build',
  'dotnet test',
  'swift build',
  'swift test',
  'xcodebuild',
  'npm',
  'npx',
  'yarn',
  'pnpm',
  'tsc',
  'webpack',
  'pytest',
  'tox',
  'jest',
  'vitest',
  'mocha',
  'ctest',
  'gcc',
  'g++',
  'cc',
  'c++',
  'clang',
  'clang++',
  'javac',
  'docker',
  'podman',
  'buildah',
  'kubectl',
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
