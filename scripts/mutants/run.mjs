// npm run mutants -- [--sample N] [--seed S] [PATH…]: breaks the source in small ways and sees whether a test notices.
// Works on a copy of the tree. A mutant that does not compile is not counted.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { mutantsOf } from './generate.mjs'

/** What is mutated, and the tests that must notice: the quick ones first, the others for what they let pass. */
const TARGETS = [
  {
    source: 'src/engine',
    tests: [
      'unit test/unit/engine test/unit/store',
      'integration test/integration/daemon test/integration/http/jobs.test.ts',
    ],
  },
  {
    source: 'src/store',
    tests: ['unit test/unit/store test/unit/engine', 'integration test/integration/daemon'],
  },
  {
    source: 'src/providers/local',
    tests: [
      'unit test/unit/providers',
      'integration test/integration/providers/shim-pool.test.ts test/integration/providers/host-provider.test.ts test/integration/providers/sandbox-provider.test.ts test/integration/providers/full-disk.test.ts',
    ],
  },
]
const TEST_MS = 900_000

const root = fileURLToPath(new URL('../..', import.meta.url))
const tree = join(root, '.cache/mutants')
const { values, positionals } = parseArgs({
  options: {
    sample: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now()) },
  },
  allowPositionals: true,
})
const say = text => process.stdout.write(`${text}\n`)

const prepare = () => {
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(tree, { recursive: true })
  const { stdout } = spawnSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
  for (const file of stdout.split('\0').filter(name => name !== '' && existsSync(join(root, name))))
    cpSync(join(root, file), join(tree, file), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
}

const compiles = () =>
  spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { cwd: tree })
    .status === 0

const passes = group => {
  const [project, ...files] = group.split(' ')
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', project, '--bail', '1', ...files]
  return spawnSync(process.execPath, args, { cwd: tree, timeout: TEST_MS, stdio: 'ignore' }).status === 0
}

/** Tests that fail by themselves prove nothing; each group is tried without a mutant before it is used. */
const sound = new Set()
const checkSound = group => {
  if (sound.has(group)) return
  // Twice: a test that fails now and then on a busy computer would end the run.
  if (!passes(group) && !passes(group)) {
    process.stderr.write(`error: tests fail without a mutant: npx vitest run --project ${group}\n`)
    process.exit(2)
  }
  sound.add(group)
}

const filesBelow = path =>
  path.endsWith('.ts') ? [path] : readdirSync(join(root, path)).flatMap(name => filesBelow(join(path, name)))

/** By a hash of the seed and the place: a sample that does not depend on the order of files. */
const rank = mutant =>
  createHash('sha256').update(`${values.seed} ${mutant.file} ${mutant.start} ${mutant.text}`).digest('hex')

const mutantsIn = ({ source, tests }) =>
  filesBelow(source)
    .filter(file => positionals.length === 0 || positionals.some(path => file.startsWith(path)))
    .flatMap(file =>
      mutantsOf(readFileSync(join(root, file), 'utf8')).map(mutant => ({ ...mutant, file, source, tests })),
    )

const judge = mutant => {
  const path = join(tree, mutant.file)
  const original = readFileSync(path, 'utf8')
  const mutated = original.slice(0, mutant.start) + mutant.text + original.slice(mutant.end)
  try {
    writeFileSync(path, mutated)
    if (!compiles()) return 'invalid'
    for (const group of mutant.tests) {
      writeFileSync(path, original)
      checkSound(group)
      writeFileSync(path, mutated)
      if (!passes(group)) return 'killed'
    }
    return 'survived'
  } finally {
    writeFileSync(path, original)
  }
}

prepare()
const all = TARGETS.flatMap(mutantsIn)
const sample = [...all].sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
say(`${all.length} mutants, seed ${values.seed}, the first ${values.sample} that compile`)
const counts = new Map(TARGETS.map(({ source }) => [source, { killed: 0, survived: 0 }]))
let judged = 0
for (const mutant of sample) {
  if (judged >= Number(values.sample)) break
  const verdict = judge(mutant)
  if (verdict === 'invalid') continue
  judged += 1
  counts.get(mutant.source)[verdict] += 1
  say(`${verdict.padEnd(8)} ${mutant.file}:${mutant.line} ${mutant.what}`)
}
for (const [source, { killed, survived }] of counts)
  if (killed + survived > 0) say(`${source}: ${killed} of ${killed + survived} killed`)
rmSync(tree, { recursive: true, force: true })
