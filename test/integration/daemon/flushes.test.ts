import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { newHome, useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'

const startDaemon = useDaemons()
const STRACE = ['strace', '-f', '--seccomp-bpf', '-y', '-qq', '-s', '300']
const canTrace = spawnSync(STRACE[0]!, [...STRACE.slice(1), '-o', '/dev/null', 'true']).status === 0

it.skipIf(!canTrace)(
  'the start marker, the result and the artifacts of a job are on disk before anything relies on them',
  async () => {
    const directory = newHome()
    const trace = join(directory, 'trace')
    const { client, home } = await startDaemon({
      directory,
      env: { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' },
      under: [...STRACE, '-o', trace, '-e', 'trace=fsync,fdatasync,rename,renameat,renameat2,execve'],
    })
    // What strace traced goes on when strace is ended.
    const { pid } = await client.daemon()
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    const { job_id } = await client.submit({
      task: '/bin/true the-command; echo kept >kept.txt',
      artifacts: ['kept.txt'],
    })
    const view = await client.wait(job_id, { timeoutMs: 50_000, signal: AbortSignal.timeout(55_000) })
    expect(view.status).toBe('success')
    const named = /rename.*exit\.json\.tmp".*exit\.json"/
    await until(
      () => /fsync/.test(readFileSync(trace, 'utf8').split(named)[1] ?? ''),
      'the result is saved, and the trace of it',
    )
    const calls = readFileSync(trace, 'utf8').split('\n')
    /** The first call from this line on that matches. */
    const find = (pattern: RegExp, from = 0): { line: number; match: RegExpExecArray } => {
      for (let line = from; line < calls.length; line++) {
        const match = pattern.exec(calls[line]!)
        if (match) return { line, match }
      }
      throw new Error(
        `No call ${pattern} after line ${from} of:\n${calls.filter(call => !call.includes('exec')).join('\n')}`,
      )
    }
    const started = find(/fsync\(\d+<(.+)\/started>/)
    const dir = started.match[1]!
    const inDir = find(new RegExp(`fsync\\(\\d+<${dir}>`), started.line)
    const command = find(/execve\("\/bin\/true", \["\/bin\/true", "the-command"\]/)
    expect(inDir.line).toBeLessThan(command.line)

    const result = find(new RegExp(`fsync\\(\\d+<${dir}/exit.json.tmp>`), command.line)
    find(new RegExp(`fsync\\(\\d+<${dir}>`), find(named, result.line).line)

    const blobs = `${home.stateDir}/blobs`
    const content = find(new RegExp(`fsync\\(\\d+<(${blobs}/incoming/[^>]+)>`), command.line)
    const blob = find(new RegExp(`rename.*${content.match[1]}", .*"(${blobs}/..)/`), content.line)
    find(new RegExp(`fsync\\(\\d+<${blob.match[1]}>`), blob.line)
    // The directory of the blob is new, too.
    find(new RegExp(`fsync\\(\\d+<${blobs}>`), command.line)
  },
)
