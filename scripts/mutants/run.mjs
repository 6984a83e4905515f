// npm run mutants -- [--sample N] [--seed S] [PATH…]: breaks the source in small ways and sees whether a test notices.
// Prints the score and the survivors. 60 mutants take about 20 minutes on two quiet cores.
// Works on a copy of the tree. A mutant that does not compile is not counted.
import { spawn, spawnSync } from 'node:child_process'
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
import { shellMutantsOf } from './generate-sh.mjs'

/**
 * What is mutated, its share of the sample, and the tests that must notice: the quick ones first, the others for what
 * those let pass. `files` narrows a folder to the files that these tests concern.
 */
const TARGETS = [
  {
    source: 'src/engine',
    share: 20,
    tests: [
      ['unit', 'test/unit/engine', 'test/unit/store'],
      ['integration', 'test/integration/http/jobs.test.ts'],
      ['faults', 'test/faults/daemon/crash.test.ts'],
    ],
  },
  {
    source: 'src/store',
    share: 16,
    tests: [
      ['unit', 'test/unit/store', 'test/unit/engine'],
      ['faults', 'test/faults/store/backup.test.ts', 'test/faults/daemon/crash.test.ts'],
    ],
  },
  {
    source: 'src/runner/program',
    share: 12,
    tests: [['integration', 'test/integration/runner', '-t', 'runner in dash (?!with)']],
  },
  {
    source: 'src/runner',
    files: /\.ts$/,
    share: 8,
    tests: [
      ['unit', 'test/unit/runner', 'test/unit/nodes'],
      ['integration', 'test/integration/runner', '-t', 'runner in dash (?!with)'],
    ],
  },
  {
    source: 'src/providers/local',
    files: /cgroup|usage|memory|disk|limit/,
    share: 4,
    tests: [
      ['unit', 'test/unit/providers'],
      ['integration', 'test/integration/providers/sandbox-limits.test.ts'],
    ],
  },
  {
    source: 'src/providers/local',
    files: /^(?!.*(cgroup|usage|memory|disk|limit))/,
    share: 12,
    tests: [
      ['unit', 'test/unit/providers'],
      [
        'integration',
        'test/integration/providers/shim-pool.test.ts',
        'test/integration/providers/host-provider.test.ts',
        'test/integration/providers/full-disk.test.ts',
      ],
    ],
  },
]
const TEST_MS = 300_000

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

const node = (args, options) => spawnSync(process.execPath, args, { cwd: tree, ...options }).status === 0

const compiles = ({ file }) =>
  file.endsWith('.sh')
    ? spawnSync('sh', ['-n', file], { cwd: tree }).status === 0 && node(['scripts/copy-programs.js'])
    : node(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json']) && node(['scripts/bundle.js'])

/**
 * `built` says that dist/ has the mutant already; a build of everything would take longer than most tests. A mutant may
 * loop for ever and fill the memory: its tests have a group of their own, which ends whole, and a small heap.
 */
const passes = ([project, ...args], built) =>
  new Promise(resolve => {
    const child = spawn(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', 'run', '--project', project, '--bail', '1', ...args],
      {
        cwd: tree,
        detached: true,
        stdio: 'ignore',
        env: {
          ...process.env,
          NODE_OPTIONS: '--max-old-space-size=1024',
          ...(built && { DEPUTY_TEST_BUILT: '1' }),
        },
      },
    )
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), TEST_MS)
    child.once('exit', code => {
      clearTimeout(timer)
      // Workers of a run that failed may go on.
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // There are none.
      }
      resolve(code === 0)
    })
  })

/** Tests that fail by themselves prove nothing; each group is tried without a mutant before it is used. */
const sound = new Set()
const checkSound = async group => {
  if (sound.has(group)) return
  // Twice: a test that fails now and then on a busy computer would end the run.
  if (!(await passes(group, false)) && !(await passes(group, false))) {
    process.stderr.write(`error: tests fail without a mutant: npx vitest run --project ${group.join(' ')}\n`)
    process.exit(2)
  }
  sound.add(group)
}

const filesBelow = path =>
  /\.(ts|sh)$/.test(path)
    ? [path]
    : readdirSync(join(root, path)).flatMap(name => filesBelow(join(path, name)))

const mutationsOf = file => {
  const source = readFileSync(join(root, file), 'utf8')
  return file.endsWith('.sh') ? shellMutantsOf(source) : mutantsOf(source)
}

/** By a hash of the seed and the place: a sample that does not depend on the order of files. */
const rank = mutant =>
  createHash('sha256').update(`${values.seed} ${mutant.file} ${mutant.start} ${mutant.text}`).digest('hex')

const mutantsIn = ({ source, files = /(?:)/, share, tests }) => ({
  share,
  mutants: filesBelow(source)
    .filter(file => files.test(file))
    .filter(file => positionals.length === 0 || positionals.some(path => file.startsWith(path)))
    .flatMap(file => mutationsOf(file).map(mutant => ({ ...mutant, file, source, tests })))
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1)),
})

const judge = async mutant => {
  for (const group of mutant.tests) await checkSound(group)
  const path = join(tree, mutant.file)
  const original = readFileSync(path, 'utf8')
  try {
    writeFileSync(path, original.slice(0, mutant.start) + mutant.text + original.slice(mutant.end))
    if (!compiles(mutant)) return 'invalid'
    for (const group of mutant.tests) if (!(await passes(group, true))) return 'killed'
    return 'survived'
  } finally {
    writeFileSync(path, original)
  }
}

prepare()
const targets = TARGETS.map(mutantsIn).filter(({ mutants }) => mutants.length > 0)
const shares = targets.reduce((sum, { share }) => sum + share, 0)
const total = targets.reduce((sum, { mutants }) => sum + mutants.length, 0)
say(`${total} mutants, seed ${values.seed}, a sample of ${values.sample} that compile`)
const counts = new Map(TARGETS.map(({ source }) => [source, { killed: 0, survived: 0 }]))
const survivors = []
for (const { share, mutants } of targets) {
  const quota = Math.ceil((share * Number(values.sample)) / shares)
  let judged = 0
  for (const mutant of mutants) {
    if (judged >= quota) break
    const began = Date.now()
    const verdict = await judge(mutant)
    if (verdict === 'invalid') continue
    judged += 1
    counts.get(mutant.source)[verdict] += 1
    const line = `${mutant.file}:${mutant.line} ${mutant.what}`
    if (verdict === 'survived') survivors.push(line)
    say(`${verdict.padEnd(8)} ${line} (${Math.round((Date.now() - began) / 1000)} s)`)
  }
}
rmSync(tree, { recursive: true, force: true })
const sum = key => [...counts.values()].reduce((all, count) => all + count[key], 0)
for (const [source, { killed, survived }] of counts)
  if (killed + survived > 0) say(`${source}: ${killed}/${killed + survived} killed`)
say(`score: ${sum('killed')}/${sum('killed') + sum('survived')} killed`)
for (const line of survivors) say(`survived ${line}`)
