import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestCli, hasTerminal, noProvider, until } from '../../support/cli.ts'
import { requireOrSkip } from '../../support/require.ts'

const missing = requireOrSkip(await noProvider())
const cli = createTestCli()
afterAll(() => cli.close())

interface Job {
  job_id: string
  status: string
  exit_code: number | null
}

const latest = () => cli.json<Job>(['status', 'last', '--json'])

describe.skipIf(missing)('deputy run', () => {
  it('prints both streams where they belong and exits as the job did', async () => {
    const done = await cli.run(['run', '--', 'echo out; echo err >&2; exit 3'])
    expect(done).toMatchObject({ code: 3, stdout: 'out\n', stderr: 'err\n' })
  })

  it('passes an argument list on exactly', async () => {
    const args = ['a b', '', "it's", '$HOME', '--flag', '--', '*', 'new\nline']
    const done = await cli.run(['run', '--', 'printf', '<%s>\n', ...args])
    expect(done.stdout).toBe(args.map(arg => `<${arg}>\n`).join(''))
  })

  it('brings binary output through unchanged', async () => {
    const done = await cli.run(['run', '--', "printf '\\377\\376\\000\\r\\n\\033[31m\\200'"])
    expect(done.bytes).toEqual(Buffer.from([0xff, 0xfe, 0, 13, 10, 27, 91, 51, 49, 109, 0x80]))
  })

  it('exits with 124 at the timeout, and reports it', async () => {
    const done = await cli.run(['run', '--timeout', '3', '--', 'echo begun; sleep 60'])
    expect(done).toMatchObject({ code: 124, stdout: 'begun\n' })
    expect(done.stderr).toMatch(/deputy: .*timeout of 3 s/)
  })

  it('ends with 128 and the signal that ended the job', async () => {
    expect((await cli.run(['run', '--', 'exec sh -c "kill -9 \\$\\$"'])).code).toBe(137)
  })

  it('takes environment, files and artifacts', async () => {
    writeFileSync(join(cli.home, 'in.txt'), 'a\nb\n')
    const flags = ['--env', 'NAME=value with = signs', '--file', 'in.txt', '--artifact', 'out/**']
    const script = 'mkdir -p out/deep; wc -l < in.txt > out/deep/count; echo "$NAME"'
    const done = await cli.run(['run', ...flags, '--runtime', 'sandbox', '--', script])
    expect(done).toMatchObject({ code: 0, stdout: 'value with = signs\n' })
    const listed = await cli.json<{ path: string }[]>(['artifacts', 'last', '--json'])
    expect(listed.map(file => file.path)).toEqual(['out/deep/count'])
    expect((await cli.run(['artifacts', 'get', 'last', '--output', 'got'])).code).toBe(0)
    expect(readFileSync(join(cli.home, 'got/out/deep/count'), 'utf8').trim()).toBe('2')
    const again = await cli.run(['artifacts', 'get', 'last', '--output', 'got'])
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') })
    const one = await cli.run(['artifacts', 'get', 'last', 'out/deep/count', '-o', '-'])
    expect(one.stdout.trim()).toBe('2')
    const wrong = await cli.run(['artifacts', 'get', 'last', 'out/deep/coutn'])
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("did you mean 'out/deep/count'?"),
    })
  })

  it('names the artifacts that matched no file, and exits as the job did', async () => {
    const flags = ['--artifact', 'out', '--artifact', 'repotr.*']
    const script = 'mkdir out; touch out/a; exit 3'
    const done = await cli.run(['run', ...flags, '--', script])
    expect(done).toMatchObject({ code: 3, stderr: "warning: no file matched the artifact 'repotr.*'\n" })
    const quiet = await cli.run(['run', '--quiet', ...flags, '--', script])
    expect(quiet).toMatchObject({ code: 3, stderr: '' })
    const kept = await cli.json<{ machine_id: string }>(['run', '--keep', '--json', '--', 'true'])
    const exec = await cli.run(['exec', '--artifact', '*.none', kept.machine_id, '--', 'true'])
    expect(exec).toMatchObject({ code: 0, stderr: "warning: no file matched the artifact '*.none'\n" })
    expect((await cli.run(['machines', 'rm', kept.machine_id])).code).toBe(0)
  })

  it('takes a manifest from stdin and from a YAML file', async () => {
    const piped = await cli.run(['run', '-', '--env', 'WHO=you'], { input: '{"task":"echo hello $WHO"}' })
    expect(piped.stdout).toBe('hello you\n')
    writeFileSync(join(cli.home, 'job.yaml'), 'task: |\n  echo one\n  echo two\n')
    expect((await cli.run(['run', 'job.yaml'])).stdout).toBe('one\ntwo\n')
  })

  it('prints nothing but the result with --json', async () => {
    const done = await cli.run(['run', '--json', '--', 'echo out; exit 4'])
    expect(done.code).toBe(4)
    expect(JSON.parse(done.stdout)).toMatchObject({ status: 'failed', exit_code: 4, output: 'out\n' })
  })

  it('names what is wrong with a manifest, and exits with 2', async () => {
    const done = await cli.run(['run', '-'], { input: '{"task":"x","agent_type":"script"}' })
    expect(done).toMatchObject({ code: 2, stdout: '' })
    expect(done.stderr).toMatch(/unknown key 'agent_type', did you mean 'agentType'\?/)
    expect(done.stderr).toMatch(/^hint: /m)
    expect(done.stderr).not.toMatch(/\n\s+at /)
  })

  it('cancels the job at Ctrl-C', async () => {
    const run = cli.start(['run', '--', 'echo started; sleep 600'])
    await run.saw('started')
    run.child.kill('SIGINT')
    expect((await run.finished).code).toBe(130)
    expect((await latest()).status).toBe('cancelled')
  })

  it('leaves at the second Ctrl-C without waiting for the job', async () => {
    const run = cli.start(['run', '--', "trap '' TERM INT; echo started; sleep 600 & wait; sleep 600"])
    await run.saw('started')
    const { job_id } = await latest()
    run.child.kill('SIGINT')
    await until(async () => {
      const view = await cli.json<{ cancel_requested: boolean }>(['status', job_id, '--json'])
      return view.cancel_requested
    }, 'the cancel to arrive')
    run.child.kill('SIGINT')
    expect((await run.finished).code).toBe(130)
    expect(await cli.json<Job>(['status', job_id, '--wait', '--json'])).toMatchObject({ status: 'cancelled' })
  })

  it('ends the job when the reader of its output is gone', async () => {
    const done = await cli.shell('deputy run -- "while :; do echo y; sleep 0.01; done" | head -n 1')
    expect(done.stdout).toBe('y\n')
    expect(done.stderr).not.toMatch(/EPIPE|at /)
    const { job_id } = await latest()
    expect(await cli.json<Job>(['status', job_id, '--wait', '--json'])).toMatchObject({ status: 'cancelled' })
  })

  it('reports to the byte how much output it could not show', async () => {
    const size = 12_000_000
    const done = await cli.run(['run', '--', `head -c ${size} /dev/zero | tr '\\0' x`])
    expect(done.code).toBe(0)
    const { output_bytes } = await cli.json<{ output_bytes: number }>(['status', 'last', '--json'])
    expect(output_bytes).toBe(size)
    if (done.bytes.length < size) expect(done.stderr).toMatch(/of output skipped/)
  })

  it('continues where it was when the daemon is killed', async () => {
    const script = 'for i in $(seq 40); do echo "tick $i"; sleep 0.05; done'
    const run = cli.start(['run', '--', script])
    await run.saw('tick 5\n')
    const { pid } = await cli.json<{ pid: number }>(['daemon', 'status', '--json'])
    process.kill(pid, 'SIGKILL')
    const done = await run.finished
    const ticks = Array.from({ length: 40 }, (_, i) => `tick ${i + 1}\n`).join('')
    expect(done).toMatchObject({ code: 0, stdout: ticks })
    const after = await cli.json<{ pid: number }>(['daemon', 'status', '--json'])
    expect(after.pid).not.toBe(pid)
  })
})

describe.skipIf(missing)('a restart of the daemon', () => {
  it('is not noticed by those who follow or wait', async () => {
    const { stdout } = await cli.run([
      'submit',
      '--',
      'for i in $(seq 30); do echo "tick $i"; sleep 0.1; done',
    ])
    const id = stdout.trim()
    const follower = cli.start(['logs', '-f', id])
    const waiter = cli.start(['status', id, '--wait', '--json'])
    await follower.saw('tick 3\n')
    expect((await cli.run(['daemon', 'restart'])).code).toBe(0)
    const ticks = Array.from({ length: 30 }, (_, i) => `tick ${i + 1}\n`).join('')
    expect((await follower.finished).stdout).toBe(ticks)
    expect(JSON.parse((await waiter.finished).stdout)).toMatchObject({ status: 'success' })
  })
})

describe.skipIf(missing)('a stop of the daemon', () => {
  it('ends at once even though somebody follows a job, and the job is followed to its end', async () => {
    const run = cli.start(['run', '--', 'for i in $(seq 30); do echo "tick $i"; sleep 0.1; done'])
    await run.saw('tick 3\n')
    const begun = performance.now()
    expect(await cli.run(['daemon', 'stop'])).toMatchObject({ code: 0, stdout: 'stopped\n' })
    expect(performance.now() - begun).toBeLessThan(25_000)
    const done = await run.finished
    expect(done.code).toBe(0)
    expect(done.stdout.endsWith('tick 30\n')).toBe(true)
  })
})

describe.skipIf(missing)('a workspace', () => {
  const project = join(cli.home, 'project')
  const setUp = (): void => {
    mkdirSync(join(project, 'build'), { recursive: true })
    writeFileSync(join(project, '.gitignore'), 'build/\n')
    writeFileSync(join(project, 'build/out.o'), 'object')
    writeFileSync(join(project, 'a.txt'), 'one\ntwo\n')
  }

  it('is a copy without what .gitignore names', async () => {
    setUp()
    const done = await cli.run(['run', '--workspace', project, '--', 'ls -A; echo changed > a.txt'])
    expect(done.stdout.trim().split('\n').sort()).toEqual(['.gitignore', 'a.txt'])
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\ntwo\n')
  })

  it('is changed only after the user has seen the patch and agreed', async () => {
    setUp()
    const script = 'echo three >> a.txt; echo new > b.txt'
    const args = ['run', '--workspace', project, '--apply']
    const asked = await cli.run([...args, '--', script])
    expect(asked.code).toBe(0)
    expect(asked.stderr).toContain('+three')
    expect(asked.stderr).toContain('no terminal to confirm on')
    expect(existsSync(join(project, 'b.txt'))).toBe(false)
    const applied = await cli.run(['patch', 'last', '--apply', project, '--yes'])
    expect(applied).toMatchObject({ code: 0, stderr: expect.stringContaining('Applied') })
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\ntwo\nthree\n')
    expect(readFileSync(join(project, 'b.txt'), 'utf8')).toBe('new\n')
    const twice = await cli.run(['patch', 'last', '--apply', project, '--yes'])
    expect(twice).toMatchObject({ code: 2, stderr: expect.stringContaining('does not apply') })
  })

  it.skipIf(!hasTerminal)('is changed on a terminal only by a yes', async () => {
    setUp()
    const args = ['run', '--workspace', project, '--apply', '--', 'echo four >> a.txt']
    const no = await cli.tty(args, {}, 'n\n')
    expect(no.stdout).toContain('Apply this to')
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).not.toContain('four')
    const yes = await cli.tty(args, {}, 'y\n')
    expect(yes.stdout).toContain('\x1b[32m+four\x1b[39m')
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toContain('four')
  })

  it('is never the whole disk or the home', async () => {
    const done = await cli.run(['run', '--workspace', '/', '--', 'true'])
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('the whole disk') })
    const home = await cli.run(['run', '--workspace', project, '--', 'true'], { env: { HOME: project } })
    expect(home).toMatchObject({ code: 2, stderr: expect.stringContaining('your home') })
  })
})

describe.skipIf(missing)('a kept machine', () => {
  it('takes further commands, and is gone when it is destroyed', async () => {
    expect((await cli.run(['run', '--keep', '--', 'echo kept > file'])).code).toBe(0)
    const { job_id } = await latest()
    expect(await cli.run(['exec', job_id, '--', 'cat', 'file'])).toMatchObject({ code: 0, stdout: 'kept\n' })
    expect((await cli.run(['exec', job_id.slice(-8), '--', 'exit 7'])).code).toBe(7)
    const machines = await cli.json<{ machine_id: string }[]>(['machines', '--json'])
    expect(machines).toHaveLength(1)
    expect((await cli.run(['machines', 'rm', machines[0]!.machine_id])).code).toBe(0)
    expect(await cli.json(['machines', '--json'])).toEqual([])
    expect((await cli.run(['exec', job_id, '--', 'true'])).code).toBe(2)
  })
})
