import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestCli, hasTerminal, MAIN, noProvider } from '../../support/cli.ts'
import { requireOrSkip } from '../../support/require.ts'

const missing = requireOrSkip(await noProvider())
const cli = createTestCli()
afterAll(() => cli.close())

interface Summary {
  job_id: string
  status: string
}

const submit = async (...args: string[]): Promise<string> => {
  const { stdout } = await cli.run(['submit', ...args])
  const id = stdout.trim()
  await cli.run(['status', id, '--wait'])
  return id
}

describe('errors', () => {
  it.each([
    [['lst'], "Unknown command 'lst', did you mean 'list'?"],
    [['jobs'], "Unknown command 'jobs', did you mean 'list'?"],
    [['--verson'], "Unknown flag '--verson', did you mean"],
    [['list', '--stauts', 'x'], "Unknown flag --stauts, did you mean '--status'?"],
    [['list', '--status', 'sucess'], "did you mean 'success'?"],
    [['daemon', 'stpo'], "did you mean 'stop'?"],
    [['completion', 'tcsh'], 'Completion exists for bash, zsh, fish'],
    [['help', 'rnu'], "did you mean 'run'?"],
    [['constructor'], "Unknown command 'constructor'"],
    [
      ['run', '--env', 'constructor', '--', 'x'],
      '--env constructor copies the variable constructor, which is not set',
    ],
    [['list', 'foo'], "deputy list takes no argument, but got 'foo'"],
    [['run', 'nofile.yaml'], 'The manifest nofile.yaml does not exist'],
    [['config', 'set', 'defaults.timeout', 'soon'], "'defaults.timeout'"],
    [['config', 'set', 'defaults.timeot', '5'], "did you mean 'timeout'?"],
    [['run', '--agent', 'constructor', 'x'], "Unknown agent 'constructor'"],
    [['status', 'zzz'], "Invalid job id 'zzz'"],
    [['status', 'abc'], 'too short'],
    [['status', '01a1dd95-0000-7000-8000-000000000000'], 'No job'],
    [['status', 'abcdef12'], "No job matches 'abcdef12'"],
    [['status'], 'No job given'],
    [['run'], 'No command given'],
    [['run', '--apply', '--', 'x'], '--apply needs --workspace'],
    [['mcp', 'install', 'emacs'], "Unknown client 'emacs'"],
    [['config', 'explain', 'limtis'], "did you mean 'limits'?"],
  ])('%j is explained in words and ends with 2', async (args, text) => {
    const done = await cli.run(args)
    expect(done).toMatchObject({ code: 2, stdout: '' })
    expect(done.stderr).toContain(text)
    expect(done.stderr).not.toMatch(/\n\s+at /)
  })

  it('an invalid configuration is reported from the log of the daemon that could not start', async () => {
    const other = createTestCli()
    mkdirSync(join(other.home, 'config'), { recursive: true })
    writeFileSync(join(other.home, 'config/config.yaml'), 'defaults:\n  timeot: 5\n')
    const done = await other.run(['list'])
    expect(done.code).toBe(1)
    expect(done.stderr).toContain("unknown setting 'defaults.timeot', did you mean 'timeout'?")
    const doctor = await other.run(['doctor'])
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining('timeot') })
    await other.close()
  })
})

describe('the daemon', () => {
  it('is not started by commands that only read', async () => {
    const other = createTestCli()
    expect(await other.run(['daemon', 'status'])).toMatchObject({ code: 1 })
    expect(await other.json(['daemon', 'status', '--json'])).toMatchObject({ running: false })
    expect(await other.run(['daemon', 'stop'])).toMatchObject({ code: 0, stdout: 'no daemon was running\n' })
    expect((await other.run(['config', 'explain'])).code).toBe(0)
    expect(await other.json(['daemon', 'status', '--json'])).toMatchObject({ running: false })
    await other.close()
  })

  // Elsewhere the environment of a process is nobody's to read.
  it.runIf(process.platform === 'linux')(
    'is said to be older than the settings, by their names alone',
    async () => {
      const other = createTestCli({ CALLBACK_HOST: '127.0.0.1' })
      expect((await other.run(['doctor'])).stdout).not.toContain('CALLBACK_HOST')
      const changed = { CALLBACK_HOST: '127.0.0.9', PROXMOX_TOKEN_VALUE: 'hunter2' }
      const { stdout } = await other.run(['doctor'], { env: changed })
      expect(stdout).toContain(
        'CALLBACK_HOST, PROXMOX_TOKEN_VALUE are set here, but the daemon was started without them or with other values\n    fix: deputy daemon restart\n',
      )
      expect(stdout).not.toMatch(/hunter2|127\.0\.0\.9/)
      await other.close()
    },
  )

  it('is one, however many start it at once', async () => {
    const other = createTestCli()
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => other.run(['daemon', 'start', '--json'])),
    )
    const pids = new Set(answers.map(answer => JSON.parse(answer.stdout).pid))
    expect(pids.size).toBe(1)
    // Those that lost must not rise again when the winner goes.
    expect(await other.run(['daemon', 'stop'])).toMatchObject({ code: 0, stdout: 'stopped\n' })
    expect(await other.json(['daemon', 'status', '--json'])).toMatchObject({ running: false })
    await other.close()
  })

  it('shows its process and address, and restarts as another process', async () => {
    const before = await cli.json<{ pid: number }>(['daemon', 'start', '--json'])
    expect(before).toMatchObject({
      running: true,
      socket: expect.any(String),
      url: null,
      version: expect.any(String),
    })
    const after = await cli.json<{ pid: number }>(['daemon', 'restart', '--json'])
    expect(after.pid).not.toBe(before.pid)
    expect(await cli.run(['serve'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Another daemon'),
    })
  })

  it('works with a home given as a relative path', async () => {
    const done = await cli.run(['daemon', 'status', '--json'], {
      cwd: '/tmp',
      env: { DEPUTY_HOME: `../${cli.home}` },
    })
    expect(JSON.parse(done.stdout)).toMatchObject({ running: true })
  })
})

describe.skipIf(missing)('jobs', () => {
  it('are found by the beginning and the end of their ids, unless that fits several', async () => {
    const [one, two] = [await submit('--', 'echo one'), await submit('--', 'echo two')]
    for (const text of [one, one.toUpperCase(), one.slice(-6), one.slice(-12), one.slice(0, 30)])
      expect((await cli.json<Summary>(['status', text, '--json'])).job_id).toBe(one)
    expect((await cli.json<Summary>(['status', 'last', '--json'])).job_id).toBe(two)
    const both = await cli.run(['status', one.slice(0, 6)])
    expect(both).toMatchObject({ code: 2, stderr: expect.stringMatching(/matches \d+ jobs/) })
  })

  it('are listed, filtered and paged', async () => {
    const id = await submit('--label', 'team=blue', '--', 'exit 9')
    const page = await cli.json<{ jobs: Summary[] }>(['list', '--label', 'team=blue', '--json'])
    expect(page.jobs.map(job => job.job_id)).toEqual([id])
    const failed = await cli.json<{ jobs: Summary[] }>(['list', '--status', 'failed', '--json'])
    expect(failed.jobs.every(job => job.status === 'failed')).toBe(true)
    const first = await cli.json<{ jobs: Summary[]; next_cursor: string }>(['list', '-n', '1', '--json'])
    const next = await cli.json<{ jobs: Summary[] }>([
      'list',
      '-n',
      '1',
      '--cursor',
      first.next_cursor,
      '--json',
    ])
    expect(next.jobs[0]!.job_id).not.toBe(first.jobs[0]!.job_id)
    const table = await cli.run(['list'])
    expect(table.stdout).toMatch(/^ID +STATUS +EXIT/)
    expect(table.stdout).toContain(id.slice(-8))
    expect(table.stdout).not.toContain('\x1b')
  })

  it('show their log, its end, and follow it as it grows', async () => {
    const id = await submit('--', 'for i in 1 2 3 4 5; do echo "line $i"; done; echo oops >&2')
    expect(await cli.run(['logs', id])).toMatchObject({
      stdout: 'line 1\nline 2\nline 3\nline 4\nline 5\n',
      stderr: 'oops\n',
    })
    expect(await cli.run(['logs', '-n', '2', id])).toMatchObject({ stdout: 'line 5\n', stderr: 'oops\n' })
    const page = await cli.json<{ pieces: unknown[]; done: boolean }>(['logs', id, '--json'])
    expect(page.done).toBe(true)
    const { stdout } = await cli.run(['submit', '--', 'echo a; sleep 0.5; echo b; sleep 0.5; echo c'])
    expect((await cli.run(['logs', '-f', stdout.trim()])).stdout).toBe('a\nb\nc\n')
  })

  it('let a reader leave in the middle of a log', async () => {
    const id = await submit('--', 'seq 100000')
    const done = await cli.shell(
      `set -o pipefail; deputy logs ${id} | head -n 2; echo "status ${'$'}{PIPESTATUS[0]}" >&2`,
    )
    expect(done.stdout).toBe('1\n2\n')
    expect(done.stderr).toMatch(/^status (141|0)\n$/)
  })

  it('return their result and their events', async () => {
    const id = await submit('--', 'echo out; exit 5')
    const result = await cli.run(['result', id, '--exit-code'])
    expect(result).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/failed[\s\S]*exit +5[\s\S]*out\n$/),
    })
    expect(await cli.json(['result', id, '--json'])).toMatchObject({ output: 'out\n', exit_code: 5 })
    const events = await cli.json<{ type: string; job_id: string }[]>(['events', id, '--json'])
    expect(events[0]).toMatchObject({ type: 'submitted', job_id: id })
    expect((await cli.run(['events', '-f', id])).stdout).toContain('from=running to=failed')
    const told = await cli.run(['events', id], { env: { TZ: 'Asia/Kolkata' } })
    expect(told.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3}\+05:30 /)
  })

  it('take times with units, a directory of artifacts, and say which globs matched nothing', async () => {
    const manifest =
      'task: mkdir out; echo 1 > out/a; echo 2 > out/b\ntimeout: 5m\nartifacts: [out, "*.none"]\n'
    const { stdout } = await cli.run(['submit', '-'], { input: manifest })
    const id = stdout.trim()
    expect(await cli.json(['status', id, '--wait', '--json'])).toMatchObject({ timeout_seconds: 300 })
    const result = await cli.json<{ artifacts: { path: string }[] }>(['result', id, '--json'])
    expect(result).toMatchObject({ unmatched_artifacts: ['*.none'] })
    expect(result.artifacts.map(({ path }) => path).sort()).toEqual(['out/a', 'out/b'])
    expect((await cli.run(['result', id])).stdout).toContain('no match  *.none')
    const wrong = await cli.run(['submit', '-'], { input: 'task: x\nmemory: 2G\n' })
    expect(wrong.stderr).toContain("unknown key 'memory', which belongs into 'resources'")
    expect(await cli.json(['submit', '--json', '--', 'true'])).toMatchObject({
      runtime: expect.any(String),
      runtime_because: expect.stringContaining('auto: '),
    })
  })

  it('are cancelled and deleted, several at a time', async () => {
    const ids = (await Promise.all([1, 2].map(() => cli.run(['submit', '--', 'sleep 600'])))).map(done =>
      done.stdout.trim(),
    )
    const cancelled = await cli.run(['cancel', ...ids, 'ffffffffffff'])
    expect(cancelled).toMatchObject({ code: 2, stderr: expect.stringContaining('No job matches') })
    for (const id of ids)
      expect(await cli.json(['status', id, '--wait', '--json'])).toMatchObject({ status: 'cancelled' })
    expect((await cli.run(['delete', ...ids])).code).toBe(0)
    expect((await cli.run(['status', ids[0]!])).code).toBe(2)
  })

  it('print JSON and nothing else with --json', async () => {
    const id = await submit('--', 'echo noise')
    const lines = ['status ID', 'result ID', 'logs ID', 'logs -n 1 ID', 'artifacts ID', 'events ID', 'list']
    lines.push('machines', 'doctor', 'config explain', 'config path', 'version', 'daemon status')
    lines.push('mcp install cursor', 'submit -- true', 'run -- echo noise', 'delete ID')
    for (const line of lines) {
      const [command = '', ...rest] = line.replace('ID', id).split(' ')
      const { stdout } = await cli.run([command, '--json', ...rest])
      expect(() => JSON.parse(stdout), `${line}: ${stdout}`).not.toThrow()
    }
  })

  it('are the same job when the same key is sent again', async () => {
    const args = ['submit', '--key', 'once', '--', 'true']
    const [one, two] = [await cli.run(args), await cli.run(args)]
    expect(one.stdout).toBe(two.stdout)
  })
})

describe.skipIf(missing || !hasTerminal)('on a terminal', () => {
  const nasty = "printf '\\033]0;owned\\007\\033[2J\\033[31mred\\033[0m\\rover'"

  it('a job cannot command it, unless --raw', async () => {
    const safe = await cli.tty(['run', '--quiet', '--', nasty])
    expect(safe.stdout).toContain('^[]0;owned^G^[[2J\x1b[31mred\x1b[0m')
    expect(safe.stdout).not.toContain('\x1b]0;')
    const raw = await cli.tty(['run', '--quiet', '--raw', '--', nasty])
    expect(raw.stdout).toContain('\x1b]0;owned\x07\x1b[2J')
    const logs = await cli.tty(['logs', 'last'])
    expect(logs.stdout).not.toContain('\x1b]0;')
  })

  it('the end of a job is shown in one line, in colours unless NO_COLOR is set', async () => {
    const colour = await cli.tty(['run', '--', 'exit 3'])
    expect(colour.code).toBe(3)
    expect(colour.stdout).toContain('\x1b[31m✗ failed\x1b[39m')
    const plain = await cli.tty(['list'], { NO_COLOR: '1' })
    expect(plain.stdout).not.toContain('\x1b[')
  })
})

describe('what needs no daemon', () => {
  it('every command shows its usage, in lines that fit, wherever --help stands', async () => {
    const other = createTestCli()
    for (const words of [['nodes'], ['proxmox', 'setup'], ['doctor'], ['cluster', 'cluster-status']]) {
      const { code, stdout } = await other.run([...words, '--help'])
      expect(code).toBe(0)
      expect(stdout).toContain(`Usage\n  deputy ${words[0]} `)
      const [body = ''] = stdout.split('\n\nExamples')
      for (const line of body.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    }
    expect(await other.json(['daemon', 'status', '--json'])).toMatchObject({ running: false })
    await other.close()
  })

  it.each([['--version'], ['completion', 'bash']])('loads next to nothing for %s %s', (...args) => {
    // How fast it is belongs into the benchmarks; why it is fast is what it leaves alone.
    const coverage = mkdtempSync(join(tmpdir(), 'deputy-loaded-'))
    spawnSync(process.execPath, [MAIN, ...args.filter(Boolean)], {
      env: { ...process.env, NODE_V8_COVERAGE: coverage },
    })
    const loaded = readdirSync(coverage)
      .flatMap(name => JSON.parse(readFileSync(join(coverage, name), 'utf8')).result as { url: string }[])
      .map(script => script.url)
      .filter(url => url.startsWith('file:'))
    rmSync(coverage, { recursive: true, force: true })
    expect(loaded.length).toBeGreaterThan(0)
    expect(loaded.length).toBeLessThan(25)
    expect(loaded.filter(url => url.includes('node_modules'))).toEqual([])
  })

  it.each(['bash', 'zsh', 'fish'])('completion for %s is understood by that shell', async shell => {
    const { stdout } = await cli.run(['completion', shell])
    expect(stdout).toContain('__complete')
    const file = join(cli.home, `completion.${shell}`)
    writeFileSync(file, stdout)
    const check = spawnSync(shell, ['-n', file])
    if (check.error) return
    expect(check.stderr.toString()).toBe('')
    expect(check.status).toBe(0)
  })

  it('completion offers commands, flags, their values, verbs and jobs', async () => {
    const offered = async (...words: string[]): Promise<string[]> => {
      const { stdout } = await cli.run(['__complete', ...words])
      return stdout.split('\n').flatMap(line => line.split('\t')[0] || [])
    }
    expect(await offered('st')).toEqual(['status'])
    expect(await offered('list', '--st')).toEqual(['--status'])
    expect(await offered('list', '--status', 'fa')).toEqual(['failed'])
    expect(await offered('daemon', 're')).toEqual(['restart'])
    expect(await offered('run', '--', 'make', '')).toEqual([])
    expect(await offered('help', 'doc')).toEqual(['doctor'])
    expect(await offered('nonsense', '')).toEqual([])
    expect(await offered('run', '--runtime', 'sa')).toEqual(['sandbox'])
    expect(await offered('run', '--agent', 'cl')).toEqual(['claude'])
    expect(await offered('run', '--secret', 'ANT')).toEqual(['ANTHROPIC_API_KEY'])
    expect(await offered('mcp', 'install', 'curs')).toEqual(['cursor'])
    expect(await offered('config', 'explain', 'defaults.t')).toEqual(['defaults.timeout'])
    const { stdout } = await cli.run(['__complete', 'status', ''])
    const { jobs } = await cli.json<{ jobs: Summary[] }>(['list', '--json'])
    for (const { job_id } of jobs) expect(stdout).toContain(`${job_id.slice(-8)}\t`)
  })

  it('settings are changed in place, and secrets are listed without their values', async () => {
    const other = createTestCli({ NPM_TOKEN: 'hush' })
    const file = (await other.run(['config', 'path'])).stdout.trim()
    mkdirSync(join(other.home, 'config'), { recursive: true })
    writeFileSync(file, '# mine\ndefaults:\n  cpu: 3 # three\n')
    expect((await other.run(['config', 'set', 'defaults.timeout', '600'])).code).toBe(0)
    expect((await other.run(['config', 'set', 'secrets.NPM_TOKEN', 'env:NPM_TOKEN'])).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(
      '# mine\ndefaults:\n  cpu: 3 # three\n  timeout: 600\nsecrets:\n  NPM_TOKEN: env:NPM_TOKEN\n',
    )
    expect((await other.run(['config', 'set', 'defaults.timeout', '-1'])).code).toBe(2)
    expect(readFileSync(file, 'utf8')).toContain('timeout: 600')
    const listed = await other.run(['secrets'])
    expect(listed.stdout).toMatch(/NPM_TOKEN +yes +env:NPM_TOKEN/)
    expect(listed.stdout).not.toContain('hush')
    const edited = await other.run(['config', 'edit'], { env: { EDITOR: 'sed -i s/600/700/' } })
    expect(edited.code).toBe(0)
    expect(readFileSync(file, 'utf8')).toContain('timeout: 700')
    await other.close()
  })

  it('completion works in a real bash', async () => {
    const done = await cli.shell(
      'source <(deputy completion bash); COMP_WORDS=(deputy list --status suc); COMP_CWORD=3; _deputy; echo "$COMPREPLY"',
    )
    expect(done).toMatchObject({ stdout: 'success\n', stderr: '' })
  })

  it('every command has help that names its flags', async () => {
    const { stdout } = await cli.run(['help'])
    const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(match => match[1]!)
    expect(names.length).toBeGreaterThan(20)
    for (const name of names) {
      const help = await cli.run([name, '--help'])
      expect(help, name).toMatchObject({ code: 0, stderr: '' })
      expect(help.stdout, name).toContain(`deputy ${name}`)
    }
  })

  it('prints how to set up a client without touching anything', async () => {
    const print = await cli.run(['mcp', 'install', 'cursor', '--print', '--read-only'], {
      env: { HOME: cli.home },
    })
    expect(print.stdout).toContain('"--read-only"')
    const write = await cli.run(['mcp', 'install', 'cursor'], { env: { HOME: cli.home } })
    const file = join(cli.home, '.cursor/mcp.json')
    expect(write.stdout).toBe(`Added to ${file}\n`)
    // A desktop program has no PATH of a shell, and must find the home that this test uses.
    expect(JSON.parse(readFileSync(file, 'utf8')).mcpServers.deputy).toEqual({
      command: process.execPath,
      args: [MAIN, 'mcp'],
      env: { DEPUTY_HOME: cli.home },
    })
    const again = await cli.run(['mcp', 'install', 'cursor', '--read-only'], { env: { HOME: cli.home } })
    expect(again.stdout).toBe(`Updated in ${file}\n`)
    const gone = await cli.run(['mcp', 'uninstall', 'cursor'], { env: { HOME: cli.home } })
    expect(gone.stdout).toBe(`Removed from ${file}\n`)
    const claude = await cli.run(['mcp', 'install', 'claude', '--print'])
    expect(claude.stdout).toMatch(/^claude mcp add --scope user deputy --env DEPUTY_HOME=\S+ -- /)
  })
})
