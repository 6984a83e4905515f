// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell scripts
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFrameReader } from '../../../src/cluster/remote/frames.ts'
import { holdCommand } from '../../../src/cluster/remote/hold.ts'
import { standbyFor } from '../../../src/cluster/remote/request.ts'
import { createShim } from '../../../src/cluster/remote/shim.ts'
import type { SshTarget } from '../../../src/cluster/ssh/arguments.ts'
import { createSsh, type SessionRequest, type Ssh } from '../../../src/cluster/ssh/session.ts'
import { labCluster, runOn } from '../../support/labcluster.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()
let next = 0
/** Sessions that are opened ahead on a node whose shell finds no Perl. */
const withoutPerl = (lab: SshLab): Ssh => {
  const standby = standbyFor('test')
  const blind = 'command() { [ "$2" != perl ] && type "$2" >/dev/null 2>&1; }\n'
  return createSsh({
    settings: { knownHosts: join(lab.directory, 'blind_hosts'), hostKeys: 'accept-new', configFile: 'none' },
    controlDirectory: join(lab.directory, 'b'),
    standby: { ...standby, script: `${blind}${standby.script}` },
  })
}
const newId = (): string => `t${process.pid}-${next++}`

describe.skipIf(missing !== undefined).each(['best', 'shell', 'no perl'] as const)(
  `a command held on a node (%s)${missing ? ` (skipped: ${missing})` : ''}`,
  holder => {
    let lab: SshLab
    let cluster: ReturnType<typeof labCluster>
    const signal = new AbortController().signal
    const where = async () => ({ target: await cluster.target(cluster.find('n1'), signal), signal })

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 1 })
      const opened = labCluster(lab)
      const ssh = holder === 'no perl' ? withoutPerl(lab) : opened.ssh
      cluster = { ...opened, ssh, shim: createShim(ssh, 'test', holder === 'shell' ? 'shell' : 'best') }
    })
    afterAll(async () => {
      cluster?.ssh.close()
      cluster?.dispose()
      await lab?.close()
    })

    it('runs in a real bash: pipes, quotes, globs, variables, redirections, newlines', async () => {
      const command = `
      X="a  b"; echo "$X" | tr a-z A-Z
      touch one.txt two.txt; echo *.txt > list; cat list
      f() { echo "f:$1"; }; f 'it'"'"'s'
      echo \${BASH_VERSION:+bash} >&2
      cd / && pwd
      exit 7`
      const { end, stdout, stderr } = await runOn(cluster, 'n1', { id: newId(), command })
      expect(stdout).toBe("A  B\none.txt two.txt\nf:it's\n/\n")
      expect(stderr).toBe('bash\n')
      expect(end).toMatchObject({ kind: 'exit', code: 7, how: 'exit' })
    })

    it('gets a clean directory, its environment and no word on any command line', async () => {
      const command =
        'ls -A; echo "$SECRET"; tr "\\0" " " < /proc/$PPID/cmdline 2>/dev/null; tr "\\0" " " < /proc/$$/cmdline 2>/dev/null'
      const env = { SECRET: "s3cr3t 'quoted' $HOME `x`" }
      const { stdout } = await runOn(cluster, 'n1', { id: newId(), command, env })
      expect(stdout.split('\n')[0]).toBe(env.SECRET)
      expect(stdout.slice(env.SECRET.length)).not.toContain('s3cr3t')
    })

    it('sees nothing of the machinery in its environment, and makes files as usual', async () => {
      const command = 'env | grep -c "^D_"; umask'
      expect((await runOn(cluster, 'n1', { id: newId(), command })).stdout).toBe('0\n0022\n')
    })

    it('is held by the shell alone when it is too long for a variable', async () => {
      const command = `: ${'x'.repeat(200_000)}\necho long`
      const { end, stdout } = await runOn(cluster, 'n1', { id: newId(), command })
      expect(end).toMatchObject({ kind: 'exit', code: 0 })
      expect(stdout).toBe('long\n')
    })

    it('cannot be turned into an option of ssh', async () => {
      const { end, stderr } = await runOn(cluster, 'n1', {
        id: newId(),
        command: '-oProxyCommand=touch${IFS}/tmp/pwned',
      })
      expect(end).toMatchObject({ kind: 'exit', code: 127 })
      expect(stderr).toContain('-oProxyCommand')
    })

    it('is started once however often it is asked for', async () => {
      const id = newId()
      const command = 'echo run >> "$HOME/count-$DEPUTY_JOB"; sleep 0.5; wc -l < "$HOME/count-$DEPUTY_JOB"'
      const runs = await Promise.all([1, 2, 3].map(() => runOn(cluster, 'n1', { id, command })))
      const again = await runOn(cluster, 'n1', { id, command })
      expect(again.stdout.trim()).toBe('1')
      expect(runs.filter(run => run.end.kind === 'exit').length).toBeGreaterThanOrEqual(1)
      for (const run of runs) if (run.end.kind === 'exit') expect(run.stdout.trim()).toBe('1')
    })

    it('keeps its output and both its streams for one who comes later', async () => {
      const id = newId()
      const command = 'for i in 1 2 3; do echo "out $i"; echo "err $i" >&2; sleep 0.1; done'
      const first = await runOn(cluster, 'n1', { id, command })
      expect(first.stdout).toBe('out 1\nout 2\nout 3\n')
      const seen: Record<string, string> = { stdout: '', stderr: '' }
      const options = {
        ...(await where()),
        onOutput: (stream: string, data: Buffer) => {
          seen[stream] += String(data)
        },
      }
      const end = await cluster.shim.attach(id, { ...options, from: 0 })
      expect(end).toMatchObject({ kind: 'exit', code: 0 })
      expect(seen).toEqual({ stdout: first.stdout, stderr: first.stderr })
      expect(end.kind === 'exit' && end.endedAt >= end.startedAt && end.startedAt > 1_000_000_000_000).toBe(
        true,
      )
    })

    it('goes on from any byte in the same order', async () => {
      const id = newId()
      const command = 'for i in $(seq 1 20); do printf "o%03d " $i; printf "e%03d " $i >&2; sleep 0.02; done'
      const order: string[] = []
      const collect = async (from: number): Promise<string> => {
        let text = ''
        await cluster.shim.attach(id, {
          ...(await where()),
          from,
          onOutput: (_, data) => {
            text += String(data)
          },
        })
        return text
      }
      await runOn(cluster, 'n1', { id, command }, { onOutput: text => order.push(text) })
      const whole = order.join('')
      expect(whole).toHaveLength(200)
      for (const from of [0, 1, 57, 100, 199, 200]) expect(await collect(from)).toBe(whole.slice(from))
    })

    it('delivers a lot of output whole', async () => {
      const bytes: Buffer[] = []
      const id = newId()
      const command = 'head -c 5000000 /dev/zero | tr "\\0" x; echo; echo end >&2'
      const { stdout, stderr, end } = await runOn(
        cluster,
        'n1',
        { id, command },
        { onOutput: text => bytes.push(Buffer.from(text)) },
      )
      expect(end).toMatchObject({ kind: 'exit', code: 0 })
      expect(stdout).toHaveLength(5_000_001)
      expect(stderr).toBe('end\n')
    })

    it('keeps the head and the tail of a flood on the node, and counts what it has not kept', async () => {
      const id = newId()
      const kept = { head: 200_000, tail: 300_000 }
      // Numbered lines of ten bytes: each tells where it was.
      const command = 'seq -f %09.0f 1 1500000; echo end >&2'
      const total = 15_000_000
      await runOn(cluster, 'n1', { id, command, keep: kept })
      const blocks = Number(
        lab.nodes[0]!.inside(`du -sk ${lab.nodes[0]!.home}/.cache/deputy/test/jobs/${id}`).split('\t')[0],
      )
      expect(blocks).toBeLessThan(1500)
      const pieces: { from: number; text: string }[] = []
      let at = 0
      let dropped = 0
      const end = await cluster.shim.attach(id, {
        ...(await where()),
        from: 0,
        onOutput: (stream, data) => {
          if (stream === 'stdout') {
            const last = pieces.at(-1)
            if (last && last.from + last.text.length === at) last.text += String(data)
            else pieces.push({ from: at, text: String(data) })
          }
          at += data.length
        },
        onDropped: bytes => {
          at += bytes
          dropped += bytes
        },
      })
      expect(end).toMatchObject({ kind: 'exit', code: 0 })
      const whole = (from: number, to: number): string =>
        Array.from(
          { length: Math.ceil(to / 10) - Math.floor(from / 10) },
          (_, i) => `${String(Math.floor(from / 10) + i + 1).padStart(9, '0')}\n`,
        )
          .join('')
          .slice(from % 10, (from % 10) + to - from)
      for (const { from, text } of pieces)
        expect(text === whole(from, from + text.length), `${from}`).toBe(true)
      expect(pieces[0]!.text.length).toBeGreaterThanOrEqual(kept.head)
      expect(dropped).toBeGreaterThan(10_000_000)
      if (holder === 'best') {
        expect(at).toBe(total + 4)
        expect(pieces.at(-1)!.text.length).toBeGreaterThanOrEqual(kept.tail - 200_000)
        expect(pieces.at(-1)!.from + pieces.at(-1)!.text.length).toBe(total)
      }
    })

    it('is caught up with when it has printed thousands of small pieces', async () => {
      const id = newId()
      const command = 'for i in $(seq 1 3000); do echo "line $i"; done'
      const first = await runOn(cluster, 'n1', { id, command })
      let text = ''
      const started = performance.now()
      await cluster.shim.attach(id, {
        ...(await where()),
        from: 5,
        onOutput: (_, data) => {
          text += String(data)
        },
      })
      expect(text).toBe(first.stdout.slice(5))
      expect(performance.now() - started).toBeLessThan(5000)
    })

    it('is ended by its own clock, with everything it started', async () => {
      const id = newId()
      const command =
        'sleep 74300 & (setsid sleep 74301 &) ; nohup sleep 74302 >/dev/null 2>&1 & trap "" TERM; echo up; while :; do sleep 1; done'
      const { end } = await runOn(cluster, 'n1', { id, command, timeoutSeconds: 1, graceSeconds: 0.5 })
      expect(end).toMatchObject({ kind: 'exit', how: 'timeout' })
      await waitFor(
        () => !/sleep 7430[012]/.test(processes()),
        () => processes(),
      )
    })

    it('is cancelled with its whole tree, daemons that left its session included', async () => {
      const id = newId()
      const command =
        'sleep 74310 & setsid sleep 74311 & (setsid sh -c "sleep 74312" &); trap "" TERM; echo up; wait; sleep 74313'
      let up = false
      const running = runOn(
        cluster,
        'n1',
        { id, command },
        {
          onOutput: () => {
            up = true
          },
        },
      )
      await waitFor(() => up)
      await waitFor(() => /sleep 74312/.test(processes()))
      expect(await cluster.shim.cancel(id, { ...(await where()), graceSeconds: 0.3 })).toEqual([])
      expect(await running).toMatchObject({ end: { kind: 'exit', how: 'cancel' } })
      expect(processes()).not.toMatch(/sleep 7431[0123]/)
    })

    it('is gone after its removal, and the node says so', async () => {
      const id = newId()
      await runOn(cluster, 'n1', { id, command: 'mkdir -p deep/er; chmod 0 deep; (sleep 74320 &) ; true' })
      expect((await cluster.shim.list(await where())).map(job => job.id)).toContain(id)
      expect(await cluster.shim.remove([id], await where())).toEqual([id])
      expect(await cluster.shim.remove([id], await where())).toEqual([id])
      expect((await cluster.shim.list(await where())).map(job => job.id)).not.toContain(id)
      expect(processes()).not.toContain('sleep 74320')
      expect((await follow(id)).kind).toBe('lost')
    })

    it('does not end what has got the number of its process since', async () => {
      const id = newId()
      await runOn(cluster, 'n1', { id, command: 'true' })
      const node = lab.nodes[0]!
      // Births are told in hundredths of a second: one in the same would be the same.
      const later = Date.now() + 50
      await waitFor(() => Date.now() > later)
      const stranger = node
        .inside('setsid sh -c "sleep 74330 & exec sleep 74331" >/dev/null 2>&1 & echo $!')
        .trim()
      await waitFor(() => /sleep 74331/.test(processes()))
      const file = `${node.home}/.cache/deputy/test/jobs/${id}/cpid`
      const [, ...life] = readFileSync(file, 'utf8').split(' ')
      writeFileSync(file, [stranger, ...life].join(' '))
      expect(await cluster.shim.cancel(id, { ...(await where()), graceSeconds: 0 })).toEqual([])
      expect([...(await cluster.shim.release([id], await where()))]).toEqual([id])
      expect(processes()).toMatch(/sleep 74330/)
      expect(processes()).toMatch(/sleep 74331/)
      node.inside(`kill -9 -${stranger}`)
    })

    it('does not end another command whose id only begins as its own', async () => {
      const id = newId()
      let up = false
      const other = runOn(
        cluster,
        'n1',
        { id: `${id}0`, command: 'echo up; while [ ! -e go ]; do sleep 0.05; done; echo whole' },
        {
          onOutput: () => {
            up = true
          },
        },
      )
      await waitFor(() => up)
      await runOn(cluster, 'n1', { id, command: 'true' })
      expect(await cluster.shim.cancel(id, { ...(await where()), graceSeconds: 0 })).toEqual([])
      lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/.cache/deputy/test/jobs/${id}0/work/go`)
      expect(await other).toMatchObject({ end: { kind: 'exit', code: 0 }, stdout: 'up\nwhole\n' })
    })

    it('never starts when it was cancelled before it came, however late it comes', async () => {
      const id = newId()
      expect(await cluster.shim.cancel(id, await where())).toEqual([])
      const command = { id, command: 'echo ran >> "$HOME/ran"' }
      expect((await runOn(cluster, 'n1', command)).end.kind).toBe('not-started')
      expect(await cluster.shim.remove([id], await where())).toEqual([id])
      expect((await runOn(cluster, 'n1', command)).end.kind).toBe('not-started')
      expect(existsSync(`${lab.nodes[0]!.home}/ran`)).toBe(false)
    })

    it('ends when it is cancelled at the very moment of its start', async () => {
      for (let round = 0; round < 12; round++) {
        const id = newId()
        const running = runOn(cluster, 'n1', { id, command: 'sleep 74340' })
        await new Promise(resolve => setTimeout(resolve, round * 4))
        expect(await cluster.shim.cancel(id, { ...(await where()), graceSeconds: 0.2 })).toEqual([])
        const { end } = await running
        if (end.kind !== 'not-started') expect(end).toMatchObject({ kind: 'exit', how: 'cancel' })
      }
      await waitFor(() => !/sleep 74340/.test(processes()))
    })

    it('is never said not to have run when the node has a part of its record only', async () => {
      const jobs = `${lab.nodes[0]!.home}/.cache/deputy/test/jobs`
      // As a power cut leaves it: names without contents, or some of them.
      const [empty, part] = [newId(), newId()]
      lab.nodes[0]!.inside(
        `cd ${jobs} && mkdir ${empty} ${part} && cd ${empty} && touch exit cmd memo index super cpid out err && cd ../${part} && touch cmd exit`,
      )
      for (const id of [empty, part]) expect((await follow(id, false)).kind).toBe('lost')
    })

    it('may run elsewhere when the node never heard of it, and then never runs there', async () => {
      const id = newId()
      expect((await follow(id, false)).kind).toBe('not-started')
      expect((await runOn(cluster, 'n1', { id, command: 'echo late' })).end.kind).toBe('not-started')
    })

    it('gets variables that are named as those of what holds it', async () => {
      const names = ['dir', 'shell', 'sig', 'base', 'work', 'me', 'D_CMD', 'D_ID', 'DEPUTY_JOB']
      const env = Object.fromEntries(names.map(name => [name, `/nowhere/${name}`]))
      const command = 'echo "$dir $shell $sig $base $D_CMD"; echo "$DEPUTY_JOB"'
      const id = newId()
      const { end, stdout } = await runOn(cluster, 'n1', { id, command, env })
      expect(end).toMatchObject({ kind: 'exit', code: 0 })
      const wanted = ['dir', 'shell', 'sig', 'base', 'D_CMD'].map(name => `/nowhere/${name}`)
      expect(stdout).toBe(`${wanted.join(' ')}\n${id}\n`)
    })

    it('is ended by its own clock when it has closed its output', async () => {
      const command = 'exec >&- 2>&-; sleep 74350'
      const { end } = await runOn(cluster, 'n1', {
        id: newId(),
        command,
        timeoutSeconds: 1,
        graceSeconds: 0.2,
      })
      expect(end).toMatchObject({ kind: 'exit', how: 'timeout' })
    })

    const ofPerl = holder === 'best' ? it : undefined
    ofPerl?.('is ended with what left its session, its parents and its mark behind', async () => {
      const id = newId()
      const command = '(setsid env -i /bin/sleep 74360 >/dev/null 2>&1 &); sleep 0.2; echo left'
      expect((await runOn(cluster, 'n1', { id, command })).stdout).toBe('left\n')
      expect(processes()).toMatch(/sleep 74360/)
      expect(await cluster.shim.remove([id], await where())).toEqual([id])
      expect(processes()).not.toMatch(/sleep 74360/)
    })

    /** As a daemon that comes back does. */
    const follow = (id: string, hasStarted = true) =>
      holdCommand({
        cluster,
        node: cluster.find('n1'),
        id,
        from: 0,
        hasStarted,
        onStarted: () => undefined,
        onOutput: () => undefined,
        signal,
      })

    it('keeps a memo for one who comes after a restart', async () => {
      const id = newId()
      const memo = Buffer.from('sealed\0 by €').toString('base64')
      await runOn(cluster, 'n1', { id, command: 'true', memo })
      expect(await cluster.shim.memoOf(id, await where())).toBe(memo)
    })

    it('gets the usual signals', async () => {
      const command = 'trap "echo int" INT; kill -INT $$; trap "echo quit" QUIT; kill -QUIT $$; echo end'
      expect((await runOn(cluster, 'n1', { id: newId(), command })).stdout).toBe('int\nquit\nend\n')
    })

    it('reports a working directory that does not exist', async () => {
      const { end, stderr } = await runOn(cluster, 'n1', {
        id: newId(),
        command: 'true',
        cwd: '/nowhere/at/all',
      })
      expect(end).toMatchObject({ kind: 'exit', code: 126 })
      expect(stderr).toContain('/nowhere/at/all')
    })

    it('is not to come any more once somebody asked for its memo in vain', async () => {
      const id = newId()
      expect(await cluster.shim.memoOf(id, await where())).toBe('')
      const { end, stdout } = await runOn(cluster, 'n1', { id, command: 'echo secret' })
      expect({ kind: end.kind, stdout }).toEqual({ kind: 'not-started', stdout: '' })
    })

    it('refuses an id that would be a path', async () => {
      await expect(runOn(cluster, 'n1', { id: '../x', command: 'true' })).rejects.toThrow('cannot be the id')
      await expect(runOn(cluster, 'n1', { id: "x';touch y;'", command: 'true' })).rejects.toThrow(
        'cannot be the id',
      )
    })

    it('does nothing when its request arrives in part', async () => {
      const id = newId()
      let sent: SessionRequest['script'] = ''
      const spy = {
        ...cluster.ssh,
        run: (request: SessionRequest) => {
          sent = request.script
          return Promise.reject(new Error('stop here'))
        },
      }
      await createShim(spy, 'test', holder === 'shell' ? 'shell' : 'best')
        .run({ id, command: 'true' }, { ...(await where()), onOutput: () => undefined })
        .catch(() => undefined)
      const request = (greeting: string | undefined): string =>
        typeof sent === 'function' ? sent(greeting) : sent
      const mark = /deputy-[0-9a-f]{18}/.exec(request(undefined))![0]
      const target = (await where()).target
      // To a fresh shell, and to whoever waits in a session that was opened ahead.
      const greetings = [undefined, ...(holder === 'shell' ? [] : [holder === 'best' ? 'perl' : 'sh'])]
      for (const wanted of greetings) {
        for (const part of [0.3, 0.6, 0.9, 0.999]) {
          const cut = (greeting: string | undefined): string => {
            const whole = request(greeting)
            return whole.slice(0, Math.floor(whole.length * part) - 3)
          }
          await onceGreeted(target, wanted, cut)
        }
      }
      expect((await cluster.shim.list(await where())).map(job => job.id)).not.toContain(id)
      const frames: string[] = []
      const read = createFrameReader(mark, frame => void frames.push(frame.kind))
      await onceGreeted(target, greetings.at(-1), request, chunk => void read(chunk))
      expect(frames).toEqual(['started', 'ended'])
    })

    if (holder === 'best') {
      it('leaves nothing of a session that was opened ahead for nobody', async () => {
        await runOn(cluster, 'n1', { id: newId(), command: 'true' })
        const jobs = join(lab.nodes[0]!.home, '.cache/deputy/test/jobs')
        const spares = (): string[] => readdirSync(jobs).filter(name => name.startsWith('.spare.'))
        await waitFor(() => spares().filter(name => existsSync(join(jobs, name, 'index'))).length === 2)
        const waiting = spares().flatMap(name =>
          ['follower', 'super', 'cpid'].map(
            file => readFileSync(join(jobs, name, file), 'utf8').split(/\s/)[0]!,
          ),
        )
        expect(alive(waiting)).toEqual(waiting)
        cluster.ssh.reset('n1')
        await waitFor(() => spares().length === 0 && alive(waiting).length === 0)
      })
    }

    const alive = (pids: readonly string[]): string[] =>
      lab.nodes[0]!.inside(`for p in ${pids.join(' ')}; do kill -0 $p 2>/dev/null && echo $p; done; true`)
        .split('\n')
        .filter(line => line !== '')

    /** Sends a request to a session of the wanted kind, opening ones ahead until there is one. */
    const onceGreeted = async (
      target: SshTarget,
      wanted: string | undefined,
      request: (greeting: string | undefined) => string,
      onStdout?: (chunk: Buffer) => undefined,
    ): Promise<void> => {
      if (wanted === undefined) {
        await cluster.ssh.run({ target, signal, script: request(undefined), ...(onStdout && { onStdout }) })
        return
      }
      await waitFor(async () => {
        let greeted: string | undefined
        await cluster.ssh.run({
          target,
          signal,
          script: greeting => {
            greeted = greeting
            return greeting === wanted ? request(greeting) : 'true\n'
          },
          ...(onStdout && { onStdout }),
        })
        return greeted === wanted
      })
    }

    const processes = (): string =>
      lab.nodes[0]!.inside(
        'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null; echo; done; true',
      )
  },
)
