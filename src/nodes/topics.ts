import { matchesPattern } from './command-pattern.ts'
import { commandsOf } from './policy/command-policy.ts'
import { baseName, isWrapper } from './policy/wrappers.ts'
import { underlyingCommand } from './underlying-command.ts'

/** The commands of each topic, as patterns of their first words. */
type TopicLists = Readonly<Record<string, readonly string[]>>

/**
 * The topics of a command line: the programs it runs and the kinds of work they do. The router prefers a node that
 * lists one of them among its specialties.
 */
export const topicsOf = (source: string, added: TopicLists = {}): string[] => {
  const topics = new Set<string>()
  const lists = Object.entries({ ...DEFAULT_TOPICS, ...normalizeKeys(added) })
  for (const command of commandsOf(source)) {
    const argv = underlyingCommand(command)
    const program = baseName(argv[0] ?? '').toLowerCase()
    if (program === '' || isWrapper(argv[0] ?? '')) continue
    topics.add(topicName(program))
    for (const [topic, entries] of lists)
      if (entries.some(entry => matchesPattern(argv, entry))) topics.add(topicName(topic))
  }
  return [...topics]
}

/** Maps synonyms to one name: `compile` becomes `build`. */
export const topicName = (name: string): string => {
  const plain = name.trim().toLowerCase()
  return SYNONYMS.get(plain) ?? plain
}

const normalizeKeys = (lists: TopicLists): TopicLists =>
  Object.fromEntries(Object.entries(lists).map(([topic, entries]) => [topicName(topic), entries]))

const SYNONYMS = new Map(
  Object.entries<string>({
    building: 'build',
    builds: 'build',
    compile: 'build',
    compilation: 'build',
    testing: 'test',
    tests: 'test',
    container: 'containers',
    images: 'containers',
    llm: 'inference',
    'model-serving': 'inference',
  }),
)

const DEFAULT_TOPICS: TopicLists = {
  build: [
    ...[
      'make',
      'gmake',
      'cmake',
      'ninja',
      'meson compile',
      'bazel build',
      'gradle',
      'gradlew',
      'mvn',
      'mvnw',
    ],
    ...['cargo build', 'cargo install', 'rustc', 'go build', 'go install', 'dotnet build', 'swift build'],
    ...['xcodebuild', 'npm run build', 'npm ci', 'yarn build', 'pnpm build', 'tsc', 'webpack', 'vite build'],
    ...['gcc', 'g++', 'cc', 'c++', 'clang', 'clang++', 'javac', 'docker build', 'podman build', 'buildah'],
  ],
  test: [
    ...['pytest', 'tox', 'jest', 'vitest', 'mocha', 'ctest', 'cargo test', 'go test', 'dotnet test'],
    ...['swift test', 'bazel test', 'make test', 'make check', 'npm test', 'npm t', 'npm run test'],
    ...[
      'yarn test',
      'pnpm test',
      'gradle test',
      'gradlew test',
      'mvn test',
      'mvn verify',
      'rspec',
      'phpunit',
    ],
  ],
  containers: ['docker', 'podman', 'buildah', 'nerdctl', 'kubectl', 'helm'],
  gpu: ['nvidia-smi', 'nvcc', 'torchrun', 'accelerate launch', 'deepspeed'],
  inference: ['ollama', 'vllm', 'llama-server', 'llama-cli', 'mlx_lm.generate', 'mlx_lm.server'],
  media: ['ffmpeg', 'ffprobe', 'magick', 'convert', 'HandBrakeCLI'],
  archive: ['tar', 'zip', 'unzip', 'zstd', 'xz', 'gzip', '7z'],
  transfer: ['rsync', 'scp', 'rclone'],
  search: ['find', 'grep -r', 'grep -R', 'rg', 'ag'],
  database: ['psql', 'pg_dump', 'pg_restore', 'mysql', 'mysqldump', 'sqlite3', 'duckdb'],
}
