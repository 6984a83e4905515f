// npm run chaos -- [--minutes N] [--jobs N] [--seed S] [PROVIDER…]: compiles the driver and runs it in namespaces of its
// own, so that its mounts, its network and its processes end with it, whatever happens.
import { execFileSync, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: { minutes: { type: 'string' }, jobs: { type: 'string' }, seed: { type: 'string' } },
  allowPositionals: true,
})
// A number of jobs ends the run; the time is then only the limit.
const minutes = Number(values.minutes ?? (values.jobs === undefined ? 2 : 60))
const jobs = Number(values.jobs ?? 0)
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed)
const refuse = message => {
  process.stderr.write(`error: ${message}\n`)
  process.exit(2)
}
if (!(minutes > 0 && minutes <= 24 * 60)) refuse(`invalid --minutes '${values.minutes}'`)
if (!Number.isSafeInteger(jobs) || jobs < 0) refuse(`invalid --jobs '${values.jobs}'`)
if (!Number.isSafeInteger(seed) || seed < 0) refuse(`invalid --seed '${values.seed}'`)
if (process.getuid?.() !== 0)
  refuse('chaos needs root, for mounts and namespaces of its own: sudo npm run chaos')

const tsc = config =>
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', config], {
    cwd: root,
    stdio: 'inherit',
  })
const build = join(root, '.cache/chaos/build')
rmSync(build, { recursive: true, force: true })
tsc('tsconfig.build.json')
execFileSync(process.execPath, ['scripts/bundle.js'], { cwd: root, stdio: 'inherit' })
tsc('tsconfig.chaos.json')
for (const file of ['package.json', 'test/support/containers/tools-image.sh'])
  cpSync(join(root, file), join(build, file))

// Short: Podman refuses a state directory whose path is longer than 50 characters.
const kept = mkdtempSync(join(tmpdir(), `chaos-${seed}-`))
// What tests and product put into the temporary directory is kept with the rest.
const temporary = join(kept, 'tmp')
mkdirSync(temporary, { mode: 0o777 })
process.stdout.write(`seed ${seed}, ${jobs === 0 ? '' : `${jobs} jobs in at most `}${minutes} minutes\n`)
const NAMESPACES = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
// bash is process 1: it reaps what the driver's victims leave behind.
const SCRIPT = `mkdir -p /run/netns && mount -t tmpfs netns /run/netns && ip link set lo up || exit 2
node "$@" & wait $!; status=$?
[ $status = 0 ] || cp -a "$KEPT/home" "$KEPT/home.kept"
exit $status`
const main = join(build, 'test/chaos/main.js')
const { status } = spawnSync(
  'unshare',
  [
    ...NAMESPACES,
    'bash',
    '-c',
    SCRIPT,
    'bash',
    main,
    ...[seed, minutes, jobs].map(String),
    kept,
    ...positionals,
  ],
  { stdio: 'inherit', env: { ...process.env, KEPT: kept, TMPDIR: temporary } },
)
if (status === 0) rmSync(kept, { recursive: true, force: true })
else {
  const again = [
    ...Object.entries({ ...values, seed }).map(([name, value]) => `--${name} ${value}`),
    ...positionals,
  ]
  const home = existsSync(join(kept, 'home.kept')) ? 'home.kept is the home, ' : ''
  process.stdout.write(`kept in ${kept}: ${home}journal tells what happened when
again: npm run chaos -- ${again.join(' ')}\n`)
}
process.exit(status ?? 1)
