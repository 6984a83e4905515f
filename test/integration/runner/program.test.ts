// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell scripts
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Channel } from '../../../src/runner/channel.ts'
import {
  followOnce,
  listWorkspaces,
  readContext,
  releaseWorkspaces,
  stopRun,
} from '../../../src/runner/client.ts'
import { listFiles } from '../../../src/runner/file-list.ts'
import { runnerScript } from '../../../src/runner/program.ts'
import { readFiles } from '../../../src/runner/read-files.ts'
import { has } from '../../support/has.ts'
import { followOn, runThrough, startOf } from '../../support/labcluster.ts'
import { BSD_TOOLS, createLocalRunner, type LocalRunner } from '../../support/local-runner.ts'
import { waitFor } from '../../support/sshlab.ts'

const busybox = (): Record<string, string> =>
  Object.fromEntries(
    execFileSync('busybox', ['--list'], { encoding: 'utf8' })
      .split('\n')
      .filter(name => name !== '' && name !== 'bash')
      .map(name => [name, '/usr/bin/busybox']),
  )

const KINDS = [
  { kind: 'dash', shell: ['dash'] },
  { kind: 'bash', shell: ['bash', '--posix'] },
  { kind: 'busybox ash and its tools', shell: ['busybox', 'sh'], tools: busybox },
  {
    kind: 'dash with the tools of a BSD and no /proc',
    shell: ['dash'],
    tools: () => BSD_TOOLS,
    withoutProc: true,
  },
] as const

let next = 0
const newId = (): string => `t${process.pid}-${next++}`
/** A sleep that no other test of this computer has. */
const newSleep = (): string => `sleep ${process.pid + 100_000}.${next++}`
const { signal } = new AbortController()

const processes = (): string =>
  spawnSync('sh', ['-c', 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null; echo; done'], {
    encoding: 'utf8',
  }).stdout

const lines = (from: number, to: number): string => {
  const first = Math.floor(from / 10)
  return Array.from(
    { length: Math.ceil(to / 10) - first },
    (_, i) => `${String(first + i + 1).padStart(9, '0')}\n`,
  )
    .join('')
    .slice(from % 10, (from % 10) + to - from)
}

const installed = KINDS.filter(({ shell }) => has(shell[0])).map(setup => [setup.kind, setup] as const)

describe.each(installed)('a command held by the runner in %s', (_, setup) => {
  let runner: LocalRunner
  let channel: Channel
  const hasProc = !('withoutProc' in setup)

  beforeAll(async () => {
    runner = createLocalRunner({ ...setup, tools: 'tools' in setup ? setup.tools() : {} })
    channel = await runner.connect(signal)
  })
  afterAll(() => runner.dispose())
  const run = (command: Parameters<typeof runThrough>[1], options?: Parameters<typeof runThrough>[2]) =>
    runThrough(runner, command, options)
  const release = async (id: string): Promise<boolean> =>
    (await releaseWorkspaces(channel, { workspaces: [id], bar: [], signal })).has(id)
  const stop = (id: string, graceSeconds: number) => stopRun(channel, { run: id, graceSeconds, signal })
  const attach = async (id: string, from: number): Promise<string> => {
    let text = ''
    await followOnce(
      channel,
      { kind: 'follow', run: id, from },
      {
        signal,
        onOutput: (_, data) => {
          text += String(data)
        },
      },
    )
    return text
  }

  it('notes the length of each stream', async () => {
    const id = newId()
    await run({ id, command: 'printf abc; head -c 2000000 /dev/zero >&2' })
    const [out, err] = ['out_end', 'err_end'].map(file => readFileSync(runner.at('jobs', id, file), 'utf8'))
    expect({ out, err }).toEqual({ out: '3\n', err: '2000000\n' })
  })

  it('runs in a real bash: pipes, quotes, globs, variables, redirections, newlines', async () => {
    const command = `
      X="a  b"; echo "$X" | tr a-z A-Z
      touch one.txt two.txt; echo *.txt > list; cat list
      f() { echo "f:$1"; }; f 'it'"'"'s'
      echo \${BASH_VERSION:+bash} >&2
      cd / && pwd
      exit 7`
    const { end, stdout, stderr } = await run({ id: newId(), command })
    expect(stdout).toBe("A  B\none.txt two.txt\nf:it's\n/\n")
    expect(stderr).toBe('bash\n')
    expect(end).toMatchObject({ kind: 'exit', code: 7, how: 'exit' })
  })

  it('gets arguments and variables byte for byte', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 }).filter(value => !value.includes('\0'))
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 6 }), text, async (words, value) => {
        const id = newId()
        const printed: Buffer[] = []
        await followOn(runner, id, {
          start: {
            ...startOf({ id, command: '' }),
            env: [`VALUE=${value}`],
            argv: ['bash', '-c', 'printf "%s\\0" "$@" "$VALUE"', 'bash', ...words],
          },
          onOutput: (_, data) => void printed.push(data),
        })
        expect(Buffer.concat(printed).toString()).toBe(
          [...words, value].map(word => `${Buffer.from(word).toString()}\0`).join(''),
        )
      }),
      { numRuns: 8 },
    )
  })

  it('gets a clean directory, its environment and no secret on any command line', async () => {
    const command =
      'ls -A; echo "$SECRET"; tr "\\0" " " < /proc/$PPID/cmdline; tr "\\0" " " < /proc/$$/cmdline'
    const env = { SECRET: "s3cr3t 'quoted' $HOME `x`" }
    const { stdout } = await run({ id: newId(), command, env })
    expect(stdout.split('\n')[0]).toBe(env.SECRET)
    expect(stdout.slice(env.SECRET.length)).not.toContain('s3cr3t')
  })

  it('gets variables that are named as those of the runner, and makes files as usual', async () => {
    const names = ['dir', 'run', 'detach', 'runs', 'work', 'left', 'head', 'stream']
    const env = Object.fromEntries(names.map(name => [name, `/nowhere/${name}`]))
    const id = newId()
    const command =
      'echo "$dir $run $detach $left"; echo "$DEPUTY_JOB"; umask; [ "$PWD" = "$DEPUTY_WORKSPACE" ]'
    const { end, stdout } = await run({ id, command, env })
    expect(end).toMatchObject({ kind: 'exit', code: 0 })
    const wanted = ['dir', 'run', 'detach', 'left'].map(name => `/nowhere/${name}`)
    expect(stdout).toBe(`${wanted.join(' ')}\n${id}\n0022\n`)
  })

  it('gets the usual signals', async () => {
    const command = 'trap "echo int" INT; kill -INT $$; trap "echo quit" QUIT; kill -QUIT $$; echo end'
    expect((await run({ id: newId(), command })).stdout).toBe('int\nquit\nend\n')
  })

  it('fails as in a shell when there is no such program', async () => {
    const id = newId()
    const end = await followOn(runner, id, {
      // setsid reports 126 where a directory of PATH cannot be searched.
      start: { ...startOf({ id, command: '', env: { PATH: '/usr/bin:/bin' } }), argv: ['no-such-program'] },
    })
    expect(end).toMatchObject({ kind: 'exit', code: 127 })
  })

  it('is started once however often it is asked for', async () => {
    const id = newId()
    const command = 'echo run >> "$HOME/count-$DEPUTY_JOB"; sleep 0.5; wc -l < "$HOME/count-$DEPUTY_JOB"'
    const runs = await Promise.all([1, 2, 3].map(() => run({ id, command })))
    const again = await run({ id, command })
    expect(again.stdout.trim()).toBe('1')
    expect(runs.filter(({ end }) => end.kind === 'exit').length).toBeGreaterThanOrEqual(1)
    for (const { end, stdout } of runs) if (end.kind === 'exit') expect(stdout.trim()).toBe('1')
  })

  it('keeps its output and both its streams for a later follower', async () => {
    const id = newId()
    const command = 'for i in 1 2 3; do echo "out $i"; echo "err $i" >&2; sleep 0.1; done'
    const first = await run({ id, command })
    expect(first.stdout).toBe('out 1\nout 2\nout 3\n')
    const seen = { stdout: '', stderr: '' }
    const end = await followOn(runner, id, {
      onOutput: (stream, data) => {
        seen[stream] += String(data)
      },
    })
    expect(seen).toEqual({ stdout: first.stdout, stderr: first.stderr })
    expect(end).toMatchObject({ kind: 'exit', code: 0 })
    expect(end.kind === 'exit' && end.endedAt >= end.startedAt && end.startedAt > 1e12).toBe(true)
  })

  it('continues from any byte in the same order', async () => {
    const id = newId()
    const command = 'for i in $(seq 1 20); do printf "o%03d " $i; printf "e%03d " $i >&2; sleep 0.02; done'
    const order: string[] = []
    await run({ id, command }, { onOutput: text => order.push(text) })
    const whole = order.join('')
    expect(whole).toHaveLength(200)
    for (const from of [0, 1, 57, 100, 199, 200]) expect(await attach(id, from)).toBe(whole.slice(from))
  })

  it('delivers a lot of output whole', async () => {
    const command = 'head -c 5000000 /dev/zero | tr "\\0" x; echo; echo end >&2'
    const { stdout, stderr, end } = await run({ id: newId(), command })
    expect(end).toMatchObject({ kind: 'exit', code: 0 })
    expect(stdout).toHaveLength(5_000_001)
    expect(stderr).toBe('end\n')
  })

  it('keeps the beginning and the end of a flood, and counts what it has not kept', async () => {
    const id = newId()
    const keep = { head: 200_000, tail: 300_000 }
    const total = 20_000_000
    const command = `awk 'BEGIN { for (i = 1; i <= ${total / 10}; i++) printf "%09d\\n", i }'; echo end >&2`
    await run({ id, keep, command })
    const blocks = Number(
      execFileSync('du', ['-sk', runner.at('jobs', id)], { encoding: 'utf8' }).split('\t')[0],
    )
    expect(blocks).toBeLessThan(1000)
    const pieces: { from: number; text: string }[] = []
    let at = 0
    let dropped = 0
    const end = await followOn(runner, id, {
      onOutput: (stream, data) => {
        if (stream === 'stdout') {
          const last = pieces.at(-1)
          if (last && last.from + last.text.length === at) last.text += String(data)
          else pieces.push({ from: at, text: String(data) })
          at += data.length
        }
      },
      onDropped: bytes => {
        at += bytes
        dropped += bytes
      },
    })
    expect(end).toMatchObject({ kind: 'exit', code: 0 })
    for (const { from, text } of pieces)
      expect(text === lines(from, from + text.length), `${from}`).toBe(true)
    expect(pieces[0]!.text.length).toBeGreaterThanOrEqual(keep.head)
    expect(pieces.at(-1)!.text.length).toBeGreaterThanOrEqual(keep.tail)
    expect(pieces.at(-1)!.from + pieces.at(-1)!.text.length).toBe(total)
    expect(dropped).toBeGreaterThan(total - 1_000_000)
    expect(at).toBe(total)
  })

  it('is caught up with quickly when it has printed thousands of small pieces', async () => {
    const id = newId()
    const { stdout } = await run({ id, command: 'for i in $(seq 1 3000); do echo "line $i"; done' })
    const started = performance.now()
    expect(await attach(id, 5)).toBe(stdout.slice(5))
    expect(performance.now() - started).toBeLessThan(10_000)
  })

  // Without /proc only descendants and the group can be found on this system.
  const leave = hasProc ? 'setsid ' : ''

  it('is ended by its own clock, with everything it started', async () => {
    const [a, b, c] = [newSleep(), newSleep(), newSleep()]
    const command = `${a} & (${leave}${b} &) ; nohup ${c} >/dev/null 2>&1 & trap "" TERM; while :; do sleep 1; done`
    const { end } = await run({ id: newId(), command, timeoutSeconds: 1, graceSeconds: 0.5 })
    expect(end).toMatchObject({ kind: 'exit', how: 'timeout' })
    await waitFor(() => ![a, b, c].some(each => processes().includes(each)))
  })

  it('is ended by its own clock when it has closed its output', async () => {
    const command = `exec >&- 2>&-; ${newSleep()}`
    const { end } = await run({ id: newId(), command, timeoutSeconds: 1, graceSeconds: 0.2 })
    expect(end).toMatchObject({ kind: 'exit', how: 'timeout' })
  })

  it('is followed through one session, however long it is quiet', async () => {
    const [id, go] = [newId(), runner.at(`go-${next}`)]
    let answers = 0
    const end = await followOnce(
      channel,
      { ...startOf({ id, command: `until [ -e ${go} ]; do sleep 0.1; done` }), from: 0 },
      {
        signal,
        onOutput: () => undefined,
        // The first one is the start, the others come from a command that prints nothing.
        onHeartbeat: () => {
          if (++answers === 3) writeFileSync(go, '')
        },
      },
    )
    expect(end).toMatchObject({ kind: 'exit', code: 0 })
  })

  it('does not begin after a stop that came while it was being started', async () => {
    const id = newId()
    writeFileSync(runner.at('claims', `${id}.stopped`), '')
    const { end, stdout } = await run({ id, command: 'echo begun' })
    expect({ ...end, stdout }).toMatchObject({ kind: 'exit', code: 143, how: 'stop', stdout: '' })
  })

  it('is stopped with its whole tree, processes that left its session included', async () => {
    const id = newId()
    const all = [newSleep(), newSleep(), newSleep(), newSleep()]
    const [a, b, c, d] = all
    const command = `${a} & ${leave}${b} & (${leave}sh -c "${c}; :" &); trap "" TERM; echo up; wait; ${d}`
    let up = false
    const running = run(
      { id, command },
      {
        onOutput: () => {
          up = true
        },
      },
    )
    await waitFor(() => up && processes().includes(c!))
    expect(await stop(id, 0.3)).toEqual([])
    expect(await running).toMatchObject({ end: { kind: 'exit', how: 'stop' } })
    expect(all.filter(each => processes().includes(each))).toEqual([])
  })

  it('is gone after its release', async () => {
    const id = newId()
    const left = newSleep()
    await run({ id, command: `mkdir -p deep/er; chmod 0 deep; (${left} >/dev/null 2>&1 &) ; true` })
    expect((await listWorkspaces(channel, signal)).map(workspace => workspace.id)).toContain(id)
    expect([await release(id), await release(id)]).toEqual([true, true])
    expect((await listWorkspaces(channel, signal)).map(workspace => workspace.id)).not.toContain(id)
    expect(existsSync(runner.at('jobs', id))).toBe(false)
    if (hasProc) expect(processes()).not.toContain(left)
    else spawnSync('pkill', ['-f', `^${left}$`])
    expect((await followOn(runner, id)).kind).toBe('lost')
  })

  it('does not end a stranger that has got its pid since', async () => {
    const id = newId()
    await run({ id, command: 'true' })
    // Start times are told in hundredths of a second, or in seconds.
    const later = Date.now() + (hasProc ? 50 : 1100)
    await waitFor(() => Date.now() > later)
    const [a, b] = [newSleep(), newSleep()]
    const stranger = spawn('setsid', ['sh', '-c', `${a} & exec ${b}`], { stdio: 'ignore' })
    await waitFor(() => processes().includes(b))
    const file = runner.at('jobs', id, 'command')
    const [, ...rest] = readFileSync(file, 'utf8').split(' ')
    writeFileSync(file, [stranger.pid, ...rest].join(' '))
    expect(await stop(id, 0)).toEqual([])
    expect(await release(id)).toBe(true)
    expect([a, b].filter(each => processes().includes(each))).toEqual([a, b])
    process.kill(-stranger.pid!, 'SIGKILL')
  })

  it('does not end another command whose id only begins as its own', async () => {
    const id = newId()
    let up = false
    const other = run(
      { id: `${id}0`, command: 'echo up; while [ ! -e go ]; do sleep 0.05; done; echo whole' },
      {
        onOutput: () => {
          up = true
        },
      },
    )
    await waitFor(() => up)
    await run({ id, command: 'true' })
    expect(await stop(id, 0)).toEqual([])
    writeFileSync(runner.at('work', `${id}0`, 'go'), '')
    expect(await other).toMatchObject({ end: { kind: 'exit', code: 0 }, stdout: 'up\nwhole\n' })
  })

  it('never starts when it was stopped before it came, however late it comes', async () => {
    const id = newId()
    expect(await stop(id, 1)).toEqual([])
    const command = { id, command: `echo ran >> "$HOME/ran-${id}"` }
    expect((await run(command)).end.kind).toBe('not-started')
    expect(await release(id)).toBe(true)
    expect((await run(command)).end.kind).toBe('not-started')
    expect(existsSync(join(runner.home, `ran-${id}`))).toBe(false)
  })

  it('ends when it is stopped at the very moment of its start', async () => {
    const nap = newSleep()
    for (let round = 0; round < 10; round++) {
      const id = newId()
      const running = run({ id, command: nap })
      await new Promise(resolve => setTimeout(resolve, round * 8))
      expect(await stop(id, 0.2)).toEqual([])
      const { end } = await running
      if (end.kind !== 'not-started') expect(end).toMatchObject({ kind: 'exit', how: 'stop' })
    }
    await waitFor(() => !processes().includes(nap))
  })

  it('is never said not to have run when only a part of its record is left', async () => {
    // As a power cut leaves it: names without contents, or some of them.
    const [empty, part] = [newId(), newId()]
    mkdirSync(runner.at('jobs', empty), { recursive: true })
    mkdirSync(runner.at('jobs', part))
    for (const name of ['exit', 'context', 'version', 'index', 'supervisor', 'command', 'out.0', 'err.0'])
      writeFileSync(runner.at('jobs', empty, name), '')
    for (const name of ['exit', 'context']) writeFileSync(runner.at('jobs', part, name), '')
    for (const id of [empty, part])
      expect((await followOn(runner, id, { hasStarted: false })).kind).toBe('lost')
  })

  it('is followed exactly, whatever a follower does whose connection was cut', async () => {
    const id = newId()
    const first = run({
      id,
      command: 'while ! [ -e go ]; do sleep 0.05; done; echo printed; echo wrong >&2; sleep 1',
    })
    const follower = () => readFileSync(runner.at('jobs', id, 'follower'), 'utf8').split(' ')[0]!
    await waitFor(() => existsSync(runner.at('jobs', id, 'command')) && follower() !== '')
    const old = Number(follower())
    process.kill(old, 'SIGSTOP')
    writeFileSync(join(runner.at('work', id), 'go'), '')
    expect(await attach(id, 0)).toBe('printed\nwrong\n')
    process.kill(old, 'SIGCONT')
    await first
    const skipped: number[] = []
    let text = ''
    await followOnce(
      channel,
      { kind: 'follow', run: id, from: 'printed\nwrong\n'.length },
      { signal, onOutput: (_, data) => (text += String(data)), onDropped: bytes => skipped.push(bytes) },
    )
    expect({ text, skipped }).toEqual({ text: '', skipped: [] })
  })

  it('may run elsewhere when the machine never heard of it, and then never runs here', async () => {
    const id = newId()
    expect((await followOn(runner, id, { hasStarted: false })).kind).toBe('not-started')
    expect((await run({ id, command: 'echo late' })).end.kind).toBe('not-started')
  })

  it('names the version that started it when it cannot follow that version', async () => {
    const id = newId()
    await run({ id, command: 'true' })
    writeFileSync(runner.at('jobs', id, 'version'), '7\n')
    const end = await followOn(runner, id)
    expect(end.kind === 'lost' && end.error.message).toContain(
      'started by another version of Deputy (runner 7',
    )
  })

  it('is not asked for by a daemon that is too old', async () => {
    const old = createLocalRunner({
      ...setup,
      tools: {},
      change: script => script.replace('request hello version=1', 'request hello version=0'),
    })
    const id = newId()
    const { end } = await runThrough(old, { id, command: 'true' })
    expect(end.kind).not.toBe('exit')
    expect('error' in end && end.error.message).toContain('needs a daemon with version 1')
    expect(existsSync(old.at('jobs', id))).toBe(false)
    old.dispose()
  })

  it('keeps a context for a later daemon; a run without one never starts', async () => {
    const id = newId()
    const context = Buffer.from('sealed\0 by €').toString('base64')
    await run({ id, command: 'true', context })
    expect(await readContext(channel, id, signal)).toBe(context)
    const unknown = newId()
    expect(await readContext(channel, unknown, signal)).toBe('')
    const { end, stdout } = await run({ id: unknown, command: 'echo secret' })
    expect({ kind: end.kind, stdout }).toEqual({ kind: 'not-started', stdout: '' })
  })

  it('does nothing when its request arrives in part', async () => {
    const id = newId()
    const hello = { kind: 'hello', version: 1, oldest: 1, mark: 'm', owner: 'test' } as const
    const script = runnerScript([hello, { ...startOf({ id, command: 'true' }), from: 0 }])
    const from = script.indexOf('request start')
    const cuts = [0.3, 0.6, 0.9].map(part => Math.floor(from * part))
    for (let at = from; at < script.length - 1; at += 9) cuts.push(at)
    cuts.push(script.length - 2)
    for (const cut of cuts) {
      const [program = 'sh', ...args] = setup.shell
      const env = { ...process.env, HOME: runner.home }
      const { stdout } = spawnSync(program, args, { input: script.slice(0, cut), env, encoding: 'utf8' })
      expect(stdout).toBe('')
    }
    expect(existsSync(runner.at('jobs', id))).toBe(false)
  })

  it('has its files listed and read', async () => {
    const id = newId()
    const names = ['plain', 'a b', "it's", '-rf', 'ünïcode', ...(hasProc ? ['new\nline'] : [])]
    const command = `mkdir sub; ln -s plain link; for f in "$@"; do printf "%s" "$f" > "$f"; done; echo x > sub/deep; chmod 755 sub/deep`
    const start = startOf({ id, command })
    await followOn(runner, id, { start: { ...start, argv: [...start.argv, 'bash', ...names] } })
    const listing = await listFiles({ channel, workspace: id, signal })
    expect(listing.files.map(({ path }) => path).sort()).toEqual([...names, 'link', 'sub/deep'].sort())
    expect(listing.truncated).toBe(false)
    const modified = Math.floor(statSync(runner.at('work', id, 'sub', 'deep')).mtimeMs / 1000)
    expect(listing.files).toContainEqual({ path: 'sub/deep', type: 'file', size: 2, mode: 0o755, modified })
    expect(listing.files.find(({ path }) => path === 'link')?.type).toBe('link')
    const read = new Map<string, string>()
    await readFiles(
      { channel, workspace: id, paths: [...names, 'gone'], limit: 1e6, signal },
      async ({ path }, content) => {
        const chunks: Uint8Array[] = []
        for await (const chunk of content) chunks.push(chunk)
        read.set(path, Buffer.concat(chunks).toString())
      },
    )
    expect(read).toEqual(new Map(names.map(name => [name, name])))
    await expect(listFiles({ channel, workspace: 'none', signal })).rejects.toThrow('none is not there')
  })

  it('reports that it cannot be recorded', async () => {
    const locked = createLocalRunner({ ...setup, tools: {} })
    mkdirSync(dirname(locked.at()), { recursive: true })
    // A file where the directory of records should be stops root, too.
    writeFileSync(locked.at(), '')
    const { end } = await runThrough(locked, { id: newId(), command: 'true' })
    expect(end).toMatchObject({ kind: 'not-started' })
    locked.dispose()
  })

  const cgroup = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find(at => existsSync(join(at, 'cgroup.procs')))
  const isRootWithCgroups = cgroup !== undefined && userInfo().uid === 0
  // Without /proc, as on a BSD, there are no cgroups either.
  const itWithProc = hasProc ? it.skipIf(!isRootWithCgroups) : () => {}
  itWithProc(
    'is ended with what left its session, its parents and its environment behind (with a cgroup of its own)',
    async () => {
      const id = newId()
      const nap = newSleep()
      const command = `(setsid env -i /bin/${nap} >/dev/null 2>&1 &); sleep 0.2; echo left`
      expect((await run({ id, command })).stdout).toBe('left\n')
      expect(processes()).toContain(nap)
      expect(await release(id)).toBe(true)
      expect(processes()).not.toContain(nap)
      const there = join(cgroup!, 'deputy/test')
      expect(existsSync(there) ? readdirSync(there) : []).not.toContain(id)
    },
  )
})

it.skipIf(!has('shellcheck'))(
  'shellcheck has nothing to say about the runner (skipped where it is missing)',
  () => {
    const directory = new URL('../../../src/runner/program/', import.meta.url)
    const text = (file: string) => readFileSync(new URL(file, directory), 'utf8')
    const parts = ['main', 'processes', 'hold', 'start', 'follow', 'clean-up', 'list-and-pack', 'files']
    const files = parts.map(part => `${part}.sh`)
    const others = readdirSync(directory).filter(file => file.endsWith('.sh') && !files.includes(file))
    // The parts of the runner share their variables; the others are programs of their own.
    for (const input of [files.map(text).join(''), ...others.map(text)])
      expect(spawnSync('shellcheck', ['--shell=sh', '-'], { input, encoding: 'utf8' }).stdout).toBe('')
  },
)
