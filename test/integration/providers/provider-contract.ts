import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import type { Exit, Machine, Outcome, Session } from '../../../src/ports.ts'
import {
  createHarness,
  type Harness,
  type Launched,
  launchElsewhere,
  type ProviderSubject,
} from '../../support/providers.ts'

export interface ContractOptions extends ProviderSubject {
  /** Why it cannot run here. */
  readonly skip?: string | undefined
  /** What is still there of a machine that should be gone: mounts, cgroups, processes. */
  leftovers?(harness: Harness): string[]
  /** Seconds between two lines on different streams whose order must be kept. */
  readonly orderGap?: number
  /** Seconds in which a command surely begins. */
  readonly shortTimeout?: number
  /** Whether a job has ended that nobody follows; for runtimes that keep no result in the state directory. */
  hasEnded?(harness: Harness, launched: { machine: Machine; job: { id: string } }): boolean | Promise<boolean>
  /** False: its machines have no way in for a terminal. */
  readonly sessions?: false
  /** False: terminals cannot be made here. */
  readonly terminals?: boolean
  /** Directories of other computers that it may write to. */
  readonly disks?: readonly string[]
  /** Kills what holds the command of a job, and the command. */
  killHolders?(harness: Harness, launched: { machine: Machine; job: { id: string } }): void
}

/** What the engine relies on. Every runtime has to pass it. */
export const describeProviderContract = (name: string, options: ContractOptions): void => {
  describe.skipIf(options.skip !== undefined)(
    `the ${name} runtime${options.skip ? ` (skipped: ${options.skip})` : ''}`,
    () => {
      let harness: Harness
      const patienceMs = (options.patienceSeconds ?? 30) * 1000
      const short = options.shortTimeout ?? 3
      const signal = () => AbortSignal.timeout(patienceMs)
      beforeAll(async () => {
        harness = await createHarness(options)
      })
      afterAll(() => harness.dispose())

      describe('running a command', () => {
        it('says what it needs and whether it is ready', async () => {
          const readiness = await harness.provider.check(signal())
          expect(readiness.ready).toBe(true)
          expect(readiness.runtime).toBe(harness.provider.name)
          for (const check of readiness.checks) expect(check.message).not.toBe('')
          expect(harness.provider.fits(parseManifest({ task: 'true' }))).toEqual({ ok: true })
        })

        it('brings back the output and the exit status', async () => {
          const { outcome, sink } = await harness.run({ task: 'echo hello; exit 3' })
          const exit = exitOf(outcome)
          expect(exit).toMatchObject({
            code: 3,
            signal: null,
            stopped: null,
            limitsHit: [],
            agentError: null,
          })
          expect(sink.text()).toBe('hello\n')
          expect(sink.startedAt).toEqual([exit.startedAt])
          expect(exit.endedAt).toBeGreaterThanOrEqual(exit.startedAt)
          expect(exit.isolation.length).toBeGreaterThan(0)
        })

        it('reports the signal that killed the command', async () => {
          const { outcome } = await harness.run({ task: 'kill -SEGV $$' })
          expect(exitOf(outcome)).toMatchObject({ code: 139, signal: 'SIGSEGV', stopped: null })
        })

        it('fails cleanly when the program does not exist', async () => {
          const { outcome } = await harness.run({ task: 'x' }, { argv: ['no-such-program-here'] })
          // 126 where PATH leads through a directory that this user cannot enter.
          expect([126, 127]).toContain(exitOf(outcome).code)
        })

        it('keeps both streams and their order', async () => {
          const gap = options.orderGap ?? 0.05
          const task = `for i in 1 2 3; do echo out$i; sleep ${gap}; echo err$i >&2; sleep ${gap}; done`
          const { sink } = await harness.run({ task })
          expect(sink.text()).toBe('out1\nerr1\nout2\nerr2\nout3\nerr3\n')
          expect(sink.text('stderr')).toBe('err1\nerr2\nerr3\n')
          let offset = 0
          for (const chunk of sink.chunks) {
            expect(chunk.offset).toBe(offset)
            offset += chunk.data.length
          }
          expect(sink.batches.at(-1)?.outputBytes).toBe(offset)
        })

        it('lets a command write to /dev/stdout and /dev/stderr', async () => {
          const { outcome, sink } = await harness.run({
            task: 'echo a >/dev/stdout; echo b | tee /dev/stderr',
          })
          expect(exitOf(outcome).code).toBe(0)
          expect(sink.text('stdout')).toBe('a\nb\n')
          expect(sink.text('stderr')).toBe('b\n')
        })

        it('passes arguments and environment byte for byte, past every shell', async () => {
          const nasty = [
            '$(echo no)',
            '`echo no`',
            "it's",
            '"',
            '\\',
            'a\nb',
            '\t',
            'ünï→日本\u0081\u0088',
            '',
            '*',
            '~',
            '-n',
            '!x',
          ]
          const program = 'import json,os,sys; print(json.dumps([sys.argv[1:], os.environ["NASTY"]]))'
          const { outcome, sink } = await harness.run(
            { task: 'x' },
            { argv: ['/usr/bin/python3', '-c', program, ...nasty], env: { NASTY: nasty.join('|') } },
          )
          expect(exitOf(outcome).code, sink.text()).toBe(0)
          expect(JSON.parse(sink.text())).toEqual([nasty, nasty.join('|')])
        })

        it('gives a command no input and the usual signals', async () => {
          const { outcome, sink } = await harness.run({
            task: 'cat; trap "echo int" INT; kill -INT $$; echo end',
          })
          expect(exitOf(outcome).code).toBe(0)
          expect(sink.text()).toBe('int\nend\n')
        })

        it('starts in the workspace and passes its path', async () => {
          const { sink } = await harness.run({ task: '[ "$PWD" = "$DEPUTY_WORKSPACE" ] && touch here && ls' })
          expect(sink.text()).toBe('here\n')
        })

        it('turns progress lines into progress and leaves them in the output', async () => {
          const { sink } = await harness.run({
            task: 'echo ::progress:: half way; sleep 0.1; echo x::progress:: no',
          })
          expect(sink.progress).toEqual(['half way'])
          expect(sink.text()).toContain('::progress:: half way\n')
        })

        it('closes every descriptor of its own before the command runs', async () => {
          const { sink } = await harness.run({ task: 'ls /proc/self/fd | tr "\\n" " "' })
          expect(sink.text().trim()).toBe('0 1 2 3') // 3 is the directory that ls reads.
        })
      })

      describe('secrets', () => {
        it('reach the command and are redacted in every encoding', async () => {
          const secret = 'p@ss "word"/+?&%é'
          const task = [
            'echo "raw $TOKEN end"',
            'printf %s "$TOKEN" | base64',
            'printf "user:%s" "$TOKEN" | base64',
            "python3 -c \"import os,json,urllib.parse as u; t=os.environ['TOKEN']; print(json.dumps(t), u.quote(t, safe=''))\"",
            'echo "$TOKEN" | fold -w 3 | while IFS= read -r part; do printf "%s" "$part"; sleep 0.05; done; echo',
            'echo "::progress:: with $TOKEN"',
            'echo "$TOKEN" >&2',
          ].join('\n')
          const { outcome, sink } = await harness.run({ task }, { secrets: { TOKEN: secret } })
          const everything = sink.text() + sink.progress.join('') + JSON.stringify(outcome)
          for (const form of [
            secret,
            Buffer.from(secret).toString('base64').slice(0, -4),
            encodeURIComponent(secret),
            JSON.stringify(secret).slice(1, -1),
          ])
            expect(everything).not.toContain(form)
          expect(sink.text()).toContain('raw [redacted] end')
          expect(sink.progress.at(-1)).toBe('with [redacted]')
          expect(sink.text('stderr')).toBe('[redacted]\n')
        })

        it('are redacted in names of artifacts', async () => {
          const secret = `name-${newId()}`
          const task =
            'mkdir "$TOKEN" && echo 1 >"$TOKEN/a.txt"; echo 2 >"x-$TOKEN.txt"; echo 3 >"x-[redacted].txt"; ln -s a "$TOKEN.txt"'
          const { outcome } = await harness.run(
            { task, artifacts: ['**/*.txt'] },
            { secrets: { TOKEN: secret } },
          )
          const { artifacts, skippedArtifacts } = exitOf(outcome)
          expect(artifacts.map(({ path }) => path).sort()).toEqual([
            '[redacted]/a.txt',
            'x-[redacted].txt',
            'x-[redacted].txt-2',
          ])
          expect(skippedArtifacts).toEqual([{ path: '[redacted].txt', reason: expect.any(String) }])
        })

        it('may have 50 KB', async () => {
          const secret = randomBytes(25 * 1024).toString('hex')
          const task = 'printf "%s" "$TOKEN" | wc -c; echo "$TOKEN"; echo "so: $TOKEN" >&2'
          const { outcome, sink } = await harness.run({ task }, { secrets: { TOKEN: secret } })
          expect(exitOf(outcome).code).toBe(0)
          expect(sink.text('stdout').trim().split(/\s+/)).toEqual([String(secret.length), '[redacted]'])
          expect(sink.text('stderr')).toBe('so: [redacted]\n')
        })

        it('are nowhere on the disk', async () => {
          const secret = `only-in-memory-${newId()}`
          const launched = await harness.launch({ task: 'echo go; sleep 30' }, { secrets: { TOKEN: secret } })
          await launched.sink.until(sink => sink.text().includes('go'), 'the command has started')
          for (const disk of [harness.stateDir, ...(options.disks ?? [])])
            for (const form of writtenForms(secret)) expect(grep(disk, form)).toEqual([])
          launched.stop('cancel')
          await launched.outcome
          await harness.provider.destroy(launched.machine, signal())
        })
      })

      describe('files', () => {
        it('places the files of the manifest with their modes', async () => {
          const { sink } = await harness.run({
            task: 'cat a/b.txt; ./run.sh; stat -c %a run.sh; cat bin | od -An -tx1',
            files: [
              { path: 'a/b.txt', text: 'text\n' },
              { path: 'run.sh', text: '#!/bin/sh\necho ran\n', mode: '755' },
              { path: 'bin', content: Buffer.from([0, 255, 10]).toString('base64') },
            ],
          })
          expect(sink.text()).toBe('text\nran\n755\n 00 ff 0a\n')
        })

        it('brings back what matches the globs, with sizes and hashes', async () => {
          const { outcome } = await harness.run({
            task: 'mkdir -p out/deep; echo 1 >out/a.txt; echo 22 >out/deep/b.txt; echo no >c.bin; : >out/empty.txt',
            artifacts: ['out/**/*.txt'],
          })
          const { artifacts, skippedArtifacts } = exitOf(outcome)
          expect(artifacts.map(file => [file.path, file.size])).toEqual([
            ['out/a.txt', 2],
            ['out/deep/b.txt', 3],
            ['out/empty.txt', 0],
          ])
          expect(skippedArtifacts).toEqual([])
          for (const artifact of artifacts) {
            const content = await read(harness, artifact.sha256)
            expect(createHash('sha256').update(content).digest('hex')).toBe(artifact.sha256)
          }
          expect((await read(harness, artifacts[1]!.sha256)).toString()).toBe('22\n')
        })

        it('brings them back after a failure and after a timeout', async () => {
          const failed = await harness.run({ task: 'echo x >log.txt; exit 9', artifacts: ['*.txt'] })
          expect(exitOf(failed.outcome)).toMatchObject({ code: 9, artifacts: [{ path: 'log.txt' }] })
          const late = await harness.run({
            task: 'echo x >log.txt; sleep 60',
            artifacts: ['*.txt'],
            timeout: short,
          })
          expect(exitOf(late.outcome)).toMatchObject({ stopped: 'timeout', artifacts: [{ path: 'log.txt' }] })
        })

        it('follows no link, takes no device and survives every file name', async () => {
          const names = [
            '-rf',
            'a b',
            "it's",
            'new\nline',
            '--checkpoint-action=exec=sh',
            'ünï',
            '\\134',
            '*',
          ]
          const { outcome } = await harness.run({
            task: [
              'mkdir w; cd w',
              ...names.map(name => `echo ok >${quote(name)}`),
              'ln -s /etc/passwd link; ln -s /etc dir; mkfifo pipe; ln -- -rf hard',
              'echo bad >"$(printf "not-utf8-\\377")"',
            ].join('\n'),
            artifacts: ['w/**'],
          })
          const { artifacts, skippedArtifacts } = exitOf(outcome)
          expect(artifacts.map(file => file.path).sort()).toEqual(
            [...names, 'hard'].map(name => `w/${name}`).sort(),
          )
          expect(skippedArtifacts).toEqual(
            expect.arrayContaining([
              { path: 'w/link', reason: expect.stringContaining('link') },
              { path: 'w/dir', reason: expect.stringContaining('link') },
              { path: 'w/pipe', reason: expect.stringContaining('not a regular file') },
            ]),
          )
          for (const artifact of artifacts)
            expect((await read(harness, artifact.sha256)).toString()).toBe('ok\n')
        })

        it('starts from a workspace and leaves out what it is not asked for', async () => {
          const blob = await tarBlob(harness, { 'src/main.txt': 'one\n', README: 'read me\n' })
          const { outcome, sink } = await harness.run({
            task: 'cat src/main.txt README; echo two >>src/main.txt',
            workspace: { blob },
            artifacts: ['src/main.txt'],
          })
          expect(sink.text()).toBe('one\nread me\n')
          const [artifact] = exitOf(outcome).artifacts
          expect((await read(harness, artifact!.sha256)).toString()).toBe('one\ntwo\n')
        })

        it('refuses a workspace that is not a tar before the command runs', async () => {
          const { sha256 } = await harness.blobs.put(chunks('this is not a tar'.repeat(100)), 1e6, 'upload')
          const { outcome, sink } = await harness.run({ task: 'echo ran', workspace: { blob: sha256 } })
          expect(outcome).toMatchObject({ kind: 'not-started', error: { code: 'invalid' } })
          expect(sink.text()).toBe('')
        })
      })

      describe('ending a command', () => {
        it('stops it on timeout, with SIGTERM first', async () => {
          const task = 'trap "echo asked; exit 7" TERM; echo on; while :; do sleep 0.1; done'
          const { outcome, sink } = await harness.run({ task, timeout: short })
          expect(exitOf(outcome)).toMatchObject({
            code: 7,
            stopped: 'timeout',
            limitsHit: [expect.stringContaining('time')],
          })
          expect(sink.text('stdout')).toBe('on\nasked\n')
        })

        it('appends the output of a second attempt to the first', async () => {
          const earlier = { attempts: 2, outputBytes: 6, outputBase: 6 }
          const launched = await harness.launch({ task: 'echo again' }, {}, undefined, earlier)
          expect(exitOf(await launched.outcome)).toMatchObject({ code: 0 })
          expect(launched.sink.chunks[0]).toMatchObject({ offset: 6 })
          expect(launched.sink.text()).toBe('again\n')
          await harness.provider.destroy(launched.machine, signal())
        })

        it('ends it on request', async () => {
          const launched = await harness.launch({ task: 'echo on; sleep 60; echo never' })
          await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
          launched.stop('cancel')
          expect(exitOf(await launched.outcome)).toMatchObject({ stopped: 'cancel' })
          expect(launched.sink.text()).toBe('on\n')
          await harness.provider.destroy(launched.machine, signal())
        })

        it('kills one that ignores SIGTERM', async () => {
          const launched = await harness.launch({ task: 'trap "" TERM; echo on; while :; do sleep 1; done' })
          await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
          launched.stop('cancel')
          expect(exitOf(await launched.outcome)).toMatchObject({ stopped: 'cancel', signal: 'SIGKILL' })
          await harness.provider.destroy(launched.machine, signal())
        })

        it('resolves when it is stopped immediately', async () => {
          const launched = await harness.launch({ task: 'sleep 60' })
          launched.stop('cancel')
          expect(exitOf(await launched.outcome).stopped).toBe('cancel')
          await harness.provider.destroy(launched.machine, signal())
        })

        it('kills processes that the command left running', async () => {
          const mark = newId()
          const task = `(setsid sh -c 'exec -a x sleep 300; : ${mark}' >/dev/null 2>&1 &) ; (trap '' HUP TERM; sh -c 'sleep 300; : ${mark}' &) ; echo done`
          const { outcome, sink } = await harness.run({ task })
          expect(exitOf(outcome).code).toBe(0)
          expect(sink.text()).toBe('done\n')
          expect(processesWith(mark)).toEqual([])
        })
      })

      describe('a restart of the daemon', () => {
        const COUNT = 'for i in $(seq 1 60); do echo line $i; sleep 0.05; done'
        const LINES = Array.from({ length: 60 }, (_, index) => `line ${index + 1}\n`).join('')

        it('detaches from a command and attaches again', async () => {
          const launched = await harness.launch({ task: COUNT })
          await launched.sink.until(sink => sink.text().includes('line 10\n'), 'ten lines')
          launched.detach()
          expect(await launched.outcome).toEqual({ kind: 'detached' })
          await harness.restart()
          const again = harness.reattach(launched, launched.sink.position)
          expect(exitOf(await again.outcome).code).toBe(0)
          expect(launched.sink.text() + again.sink.text()).toBe(LINES)
          expect(again.sink.startedAt).toHaveLength(1)
          await harness.provider.destroy(launched.machine, signal())
        })

        it('survives kill -9: no output is lost or doubled, and the command ran once', async () => {
          const other = await launchElsewhere(harness, options, { task: COUNT, artifacts: ['*.txt'] })
          await other.kill()
          const { seen, position } = other
          await harness.restart()
          const again = harness.reattach(other, position)
          expect(exitOf(await again.outcome).code).toBe(0)
          expect(seen + again.sink.text()).toBe(LINES)
          await harness.provider.destroy(other.machine, signal())
        })

        it('finds the result of a command that ended meanwhile', async () => {
          const other = await launchElsewhere(harness, options, {
            task: 'echo first; sleep 0.5; echo last; echo kept >a.txt; exit 4',
            artifacts: ['a.txt'],
          })
          await other.kill()
          await waitFor(
            () =>
              options.hasEnded?.(harness, other) ??
              grep(harness.stateDir, '"kind":"exit"').some(path => path.includes(other.job.id)),
            'a result',
            patienceMs,
          )
          await harness.restart()
          const again = harness.reattach(other, other.position)
          expect(exitOf(await again.outcome)).toMatchObject({
            code: 4,
            artifacts: [{ path: 'a.txt', size: 5 }],
          })
          expect(other.seen + again.sink.text()).toBe('first\nlast\n')
          // Once more, as after a crash between taking the result and committing it.
          const third = harness.reattach(other, again.sink.position)
          expect(exitOf(await third.outcome)).toMatchObject({
            code: 4,
            artifacts: [{ path: 'a.txt', size: 5 }],
          })
          expect(third.sink.text()).toBe('')
          await harness.provider.destroy(other.machine, signal())
        })

        it('enforces the timeout while no daemon runs', async () => {
          const other = await launchElsewhere(harness, options, {
            task: 'echo on; sleep 600',
            timeout: short + 2,
          })
          await other.kill()
          await waitFor(
            () =>
              options.hasEnded?.(harness, other) ?? grep(harness.stateDir, '"stopped":"timeout"').length > 0,
            'the time-out',
            patienceMs,
          )
          await harness.restart()
          const again = harness.reattach(other, other.position)
          expect(exitOf(await again.outcome)).toMatchObject({ stopped: 'timeout' })
          await harness.provider.destroy(other.machine, signal())
        })

        it('can stop a command after it attached again', async () => {
          const other = await launchElsewhere(harness, options, { task: 'echo on; sleep 60' })
          await other.kill()
          await harness.restart()
          const again = harness.reattach(other, other.position)
          again.stop('cancel')
          expect(exitOf(await again.outcome)).toMatchObject({ stopped: 'cancel' })
          await harness.provider.destroy(other.machine, signal())
        })

        it('distinguishes a command that never started from a lost one, and starts neither', async () => {
          const manifest = parseManifest({ task: 'echo never' })
          const id = newId()
          const machine: Machine = { id: newId(), runtime: harness.provider.name, jobId: id, details: {} }
          await harness.provider.create({
            machine,
            manifest,
            // As the engine does: what is not remembered cannot be destroyed.
            remember: async details => {
              Object.assign(machine.details, details)
            },
            signal: signal(),
          })
          const mark = newId()
          const launched = await harness.launch({ task: `echo on; sleep 60; : ${mark}` })
          const never = harness.reattach({ job: { ...launched.job, id }, manifest, machine }, 0)
          expect(await never.outcome).toMatchObject({ kind: 'not-started' })
          expect(never.sink.text()).toBe('')
          expect(never.sink.startedAt).toEqual([])
          await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
          if (options.killHolders) options.killHolders(harness, launched)
          else for (const pid of shimsOf(harness.stateDir, launched.job.id)) process.kill(pid, 'SIGKILL')
          expect(await launched.outcome).toMatchObject({ kind: 'lost' })
          if (!options.killHolders)
            await waitFor(() => processesWith(mark).length === 0, 'the command ends with what held it')
          const again = harness.reattach(launched, launched.sink.position)
          expect(await again.outcome).toMatchObject({ kind: 'lost' })
          await harness.provider.destroy(launched.machine, signal())
          await harness.provider.destroy(machine, signal())
        })
      })

      describe('machines', () => {
        it('are listed while they exist, and destroyed any number of times', async () => {
          const launched = await harness.launch({ task: 'echo on; sleep 60' })
          await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
          const ids = async () => (await harness.provider.list(signal())).map(machine => machine.id)
          expect(await ids()).toContain(launched.machine.id)
          await Promise.all([
            harness.provider.destroy(launched.machine, signal()),
            harness.provider.destroy(launched.machine, signal()),
          ])
          expect(['exit', 'lost', 'not-started']).toContain((await launched.outcome).kind)
          await harness.provider.destroy(launched.machine, signal())
          expect(await ids()).not.toContain(launched.machine.id)
          expect(existsSync(join(harness.stateDir, harness.provider.name, 'runs', launched.machine.id))).toBe(
            false,
          )
        })

        it('are kept when asked for: a follow-up finds the workspace as it was left', async () => {
          const first = await harness.launch({
            task: 'echo one >note; export GONE=1',
            lifecycle: 'persistent',
          })
          expect(exitOf(await first.outcome).code).toBe(0)
          const kept = { ...first.machine }
          const follow = (task: string, command = {}) =>
            harness.launch({ task, machine: kept.id }, command, kept)
          const second = await follow('cat note; echo "[$GONE$TOKEN]"; echo two >>note', {
            secrets: { TOKEN: 'tok-en-1' },
          })
          expect(exitOf(await second.outcome).code).toBe(0)
          expect(second.sink.text()).toBe('one\n[[redacted]]\n')
          await harness.restart()
          const third = await harness.launch(
            { task: 'cat note; env | grep -c TOKEN', machine: kept.id, artifacts: ['note'] },
            {},
            kept,
          )
          expect(exitOf(await third.outcome)).toMatchObject({
            code: 1,
            artifacts: [{ path: 'note', size: 8 }],
          })
          expect(third.sink.text()).toBe('one\ntwo\n0\n')
          await harness.provider.destroy(kept, signal())
          const late = await follow('cat note')
          expect(await late.outcome).toMatchObject({ kind: 'not-started', error: { code: 'not_found' } })
        })

        it('give each command its own timeout', async () => {
          const first = await harness.launch({ task: 'echo one', lifecycle: 'persistent', timeout: short })
          expect(exitOf(await first.outcome).code).toBe(0)
          const second = await harness.launch(
            { task: `sleep ${short + 1}; echo two`, machine: first.machine.id },
            {},
            first.machine,
          )
          expect(exitOf(await second.outcome)).toMatchObject({ code: 0, stopped: null })
          expect(second.sink.text()).toBe('two\n')
          await harness.provider.destroy(first.machine, signal())
        })

        it('run one command at a time', async () => {
          const first = await harness.launch({ task: 'echo on; sleep 60', lifecycle: 'persistent' })
          await first.sink.until(sink => sink.text().includes('on'), 'it runs')
          const second = await harness.launch(
            { task: 'echo two', machine: first.machine.id },
            {},
            first.machine,
          )
          expect(await second.outcome).toMatchObject({ kind: 'not-started', error: { code: 'conflict' } })
          first.stop('cancel')
          expect(exitOf(await first.outcome).stopped).toBe('cancel')
          const third = await harness.launch(
            { task: 'echo three', machine: first.machine.id },
            {},
            first.machine,
          )
          expect(exitOf(await third.outcome).code).toBe(0)
          expect(third.sink.text()).toBe('three\n')
          await harness.provider.destroy(first.machine, signal())
        })

        it('share nothing', async () => {
          await harness.run({
            task: 'echo secret >note; echo secret >/tmp/deputy-contract-note 2>/dev/null; rm -f /tmp/deputy-contract-note',
          })
          const { sink } = await harness.run({ task: 'ls -A' })
          expect(sink.text()).toBe('')
        })

        it('run many jobs at once, each complete', async () => {
          const outputs = await Promise.all(
            Array.from({ length: 12 }, async (_, index) => {
              const { outcome, sink } = await harness.run({
                task: `for i in $(seq 1 500); do echo ${index} $i; done`,
              })
              return {
                code: exitOf(outcome).code,
                lines: sink.text().split('\n').length - 1,
                last: sink.text().slice(-8),
              }
            }),
          )
          outputs.forEach((output, index) => {
            expect(output).toEqual({ code: 0, lines: 500, last: expect.stringContaining(`${index} 500\n`) })
          })
        })
      })

      const terminalSession = async (launched: Launched): Promise<void> => {
        const open = harness.provider.open!
        const never = new AbortController().signal
        const terminal = await open(
          launched.machine,
          { argv: ['sh'], env: { PS1: '%%' }, terminal: { columns: 90, rows: 25 } },
          never,
        )
        const shows = watch(terminal.stream, patienceMs)
        await shows('%%')
        terminal.stream.write('stty size\r')
        await shows('25 90')
        terminal.resize({ columns: 100, rows: 40 })
        terminal.stream.write('until [ "$(stty size)" = "40 100" ]; do sleep 0.1; done; echo res""ized\r')
        await shows('resized')
        terminal.stream.write('sh -c "echo beg""un; exec sleep 1000"\r')
        await shows('begun')
        terminal.stream.write('\x03')
        await shows('%%')
        terminal.stream.write('exit 9\r')
        expect(await terminal.exit).toBe(9)
      }
      const sessions = async (): Promise<void> => {
        const open = harness.provider.open!
        const launched = await harness.launch({
          task: 'ls / >root; echo mine >made; echo up; exec sleep 1000',
        })
        await launched.sink.until(sink => sink.text().includes('up'), 'it has started')
        const never = new AbortController().signal
        // It sees the files that the command sees.
        const isSame = '[ "$(ls /)" = "$(cat root)" ] || echo outside'
        const plain = await open(
          launched.machine,
          { argv: ['sh', '-c', `${isSame}; cat made; cat; echo $X; exit 7`], env: { X: 'variable' } },
          never,
        )
        // More than any pipe holds, both ways.
        const typed = 'typed\n'.repeat(100_000)
        plain.stream.end(typed)
        expect((await readAll(plain.stream)) === `mine\n${typed}variable\n`).toBe(true)
        expect(await plain.exit).toBe(7)

        if (options.terminals !== false) await terminalSession(launched)

        const left = await open(launched.machine, { argv: ['sleep', '1000'], env: {} }, never)
        left.stream.resume()
        launched.stop('cancel')
        await launched.outcome
        await harness.provider.destroy(launched.machine, signal())
        expect(await left.exit).not.toBe(0)
      }
      if (options.sessions !== false)
        it(
          'opens programs beside the command, with and without a terminal',
          { timeout: 6 * patienceMs },
          sessions,
        )

      it('counts the middle of a long output and keeps both ends', async () => {
        const { outcome, sink } = await harness.run({ task: 'seq 1 3000000' })
        expect(exitOf(outcome).code).toBe(0)
        const total = sink.batches.at(-1)!.outputBytes
        expect(total).toBe(22_888_896)
        expect(sink.text().startsWith('1\n2\n3\n')).toBe(true)
        expect(sink.text().endsWith('\n2999999\n3000000\n')).toBe(true)
        let position = 0
        for (const chunk of sink.chunks) {
          expect(chunk.offset).toBeGreaterThanOrEqual(position)
          position = chunk.offset + chunk.data.length
        }
        expect(position).toBe(total)
      })

      it('leaves nothing behind', async () => {
        await harness.run({ task: 'echo x' })
        expect((await harness.provider.list(signal())).map(machine => machine.id)).toEqual([])
        const runs = join(harness.stateDir, harness.provider.name, 'runs')
        expect(existsSync(runs) ? readdirSync(runs) : []).toEqual([])
        await waitFor(() => (options.leftovers?.(harness) ?? []).length === 0, 'nothing is left').catch(
          () => {},
        )
        expect(options.leftovers?.(harness) ?? []).toEqual([])
      })
    },
  )
}

export const exitOf = (outcome: Outcome): Exit => {
  if (outcome.kind !== 'exit')
    throw new Error(`no exit but ${outcome.kind}: ${'error' in outcome ? outcome.error.message : ''}`)
  return outcome.exit
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const read = async (harness: Harness, sha256: string): Promise<Buffer> => {
  const parts: Uint8Array[] = []
  for await (const chunk of harness.blobs.read(sha256)) parts.push(chunk)
  return Buffer.concat(parts)
}

async function* chunks(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

const tarBlob = async (harness: Harness, files: Record<string, string>): Promise<string> => {
  const { pack } = await import('tar-stream')
  const tar = pack()
  for (const [name, content] of Object.entries(files)) tar.entry({ name }, content)
  tar.finalize()
  return (await harness.blobs.put(tar as AsyncIterable<Uint8Array>, 1e8, 'upload')).sha256
}

/** Files below a directory that contain a text; named pipes and sockets are left alone. */
/** As it is, in hex, and in base64 wherever in a longer text it stands. */
const writtenForms = (secret: string): string[] => [
  secret,
  Buffer.from(secret).toString('hex'),
  ...[0, 1, 2].map(shift =>
    Buffer.from(' '.repeat(shift) + secret)
      .toString('base64')
      .slice(4, -4),
  ),
]

const grep = (directory: string, text: string): string[] => {
  try {
    return execFileSync('grep', ['-rlF', '--devices=skip', '--', text, directory], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split('\n')
      .filter(Boolean)
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? '')
      .split('\n')
      .filter(Boolean)
  }
}

export const processesWith = (text: string): string[] =>
  readdirSync('/proc').flatMap(pid => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return line.includes(text) ? [`${pid} ${line.replaceAll('\0', ' ')}`] : []
    } catch {
      return []
    }
  })

/** The shims of a state directory; those that hold a job have its log open. */
const shimsOf = (stateDir: string, jobId: string): number[] =>
  processesWith(stateDir)
    .filter(line => line.includes('shim.js'))
    .map(line => Number(line.split(' ')[0]))
    .filter(pid => {
      try {
        return readdirSync(`/proc/${pid}/fd`).some(fd => linkOf(`/proc/${pid}/fd/${fd}`).includes(jobId))
      } catch {
        return false
      }
    })

const linkOf = (path: string): string => {
  try {
    return execFileSync('readlink', [path], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

export const waitFor = async (
  condition: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = 30_000,
): Promise<void> => {
  for (const until = performance.now() + patienceMs; performance.now() < until; ) {
    if (await condition()) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`not within ${patienceMs / 1000} s: ${what}`)
}

const readAll = async (stream: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Waits for texts on a terminal, one after another. */
const watch = (stream: Session['stream'], patienceMs: number): ((text: string) => Promise<void>) => {
  let shown = ''
  let seen = 0
  let look = (): void => {}
  stream.on('data', chunk => {
    shown += chunk
    look()
  })
  return text =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`'${text}' is not in ${shown}`)), patienceMs)
      look = () => {
        const at = shown.indexOf(text, seen)
        if (at < 0) return
        seen = at + text.length
        clearTimeout(timer)
        resolve()
      }
      look()
    })
}
