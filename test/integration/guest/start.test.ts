import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { GuestSpec } from '../../../src/guest/order-format.ts'
import { AppError } from '../../../src/jobs/errors.ts'
import { hasCurl } from '../../support/curl.ts'
import {
  createMemoryMachine,
  type MemoryMachine,
  serveMachine,
  startRunner,
  TOKEN,
} from '../../support/guest.ts'
import { removeDirectory } from '../../support/remove-directory.ts'

const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const PATIENCE = { timeout: 30_000 }

/** Programs that leave a word before they do what their namesakes do. */
const talkative = (names: readonly string[], preface = '') => {
  const directory = mkdtempSync(join(tmpdir(), 'tools-'))
  cleanups.push(() => removeDirectory(directory))
  const log = join(directory, 'log')
  const tools = join(directory, 'bin')
  mkdirSync(tools)
  writeFileSync(log, '')
  for (const name of names) {
    let real = ''
    try {
      real = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
    } catch {
      continue
    }
    writeFileSync(join(tools, name), `#!/bin/sh\necho ${name} >>'${log}'\n${preface}\nexec '${real}' "$@"\n`)
    chmodSync(join(tools, name), 0o755)
  }
  return {
    path: `${tools}:${process.env.PATH}`,
    note: (word: string) => appendFileSync(log, `${word}\n`),
    words: () => readFileSync(log, 'utf8').trim().split('\n'),
  }
}

/** A runner that has everything ready and waits for work, until it is given. */
const waiting = async (spec: Partial<GuestSpec> & Pick<GuestSpec, 'argv'>, tools?: string) => {
  const memory = createMemoryMachine(spec)
  let give = () => {}
  const given = new Promise<void>(resolve => {
    give = resolve
  })
  const { work } = memory.machine
  let asked = false
  memory.machine.work = async signal => {
    asked = true
    await given
    return work(signal)
  }
  const listener = await serveMachine(memory)
  cleanups.push(() => listener.close())
  const runner = startRunner(
    { url: `http://127.0.0.1:${listener.port}`, token: TOKEN },
    tools === undefined ? {} : { tools },
  )
  cleanups.push(() => runner.stop())
  const file = join(runner.root, 'run/deputy/pid')
  const pid = await expect
    .poll(() => readWord(file), PATIENCE)
    .toMatch(/^\d+$/)
    .then(() => readWord(file))
  await expect.poll(() => asked, PATIENCE).toBe(true)
  // It has become the shell that reads the order, and sleeps in that.
  await expect.poll(() => readWord(`/proc/${pid}/cmdline`), PATIENCE).toMatch(/^\/bin\/sh\0/)
  await expect.poll(() => readWord(`/proc/${pid}/stat`), PATIENCE).toMatch(/\) S /)
  return { memory, runner, pid, give }
}

const readWord = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

const finish = async ({ memory, runner }: { memory: MemoryMachine; runner: { done: Promise<unknown> } }) => {
  await memory.exited
  await runner.done
}

describe.skipIf(!hasCurl)('between the order and the first byte', () => {
  const TOOLS =
    'awk base64 basename cat chmod chown curl cut date dd dirname env expr find grep head id kill ln ls mkdir mkfifo ' +
    'mv od printf rm sed seq setpriv setsid sh sort stat tail tar tee test touch tr uname wc xargs'

  it('one program is started: the one that sends it', async () => {
    const tools = talkative(TOOLS.split(' '))
    const there = await waiting(
      {
        argv: ['/bin/sh', '-c', 'echo "$GREETING"\n/bin/sleep 2'],
        heartbeatSeconds: 600,
        timeoutSeconds: 3600,
        env: { GREETING: 'one  two', LINES: 'a\nb' },
        secrets: { KEY: 'it\'s "secret"' },
      },
      tools.path,
    )
    await expect.poll(() => tools.words().filter(word => word === 'cat'), PATIENCE).toHaveLength(2)
    const { memory } = there
    const job = memory.machine.job(memory.spec.jobId)!
    const { output } = job
    job.output = frame => {
      tools.note('first byte')
      job.output = output
      return output(frame)
    }
    tools.note('order')
    there.give()
    await finish(there)
    const words = tools.words()
    expect(words.slice(words.indexOf('order') + 1, words.indexOf('first byte'))).toEqual(['curl'])
    expect(memory.stdout().toString()).toBe('one  two\n')
    expect(memory.state.startedCount).toBe(1)
  })

  it.each([
    ['first words', 'echo; exec sleep 3'],
    ['first words that do not come', 'exec sleep 3'],
  ])('the clock of a job with much time begins after its %s', async (_, script) => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell
    const tools = talkative(['sleep'], '[ "$1" != 0.5 ] || echo clock >>"${0%/*}/../log"')
    const there = await waiting(
      { argv: ['/bin/sh', '-c', script], heartbeatSeconds: 600, timeoutSeconds: 3600 },
      tools.path,
    )
    there.give()
    await finish(there)
    expect(tools.words()).toContain('clock')
  })

  it('the process that becomes the job is there already', async () => {
    const there = await waiting({ argv: ['/bin/sh', '-c', 'echo $$'] })
    there.give()
    await finish(there)
    expect(there.memory.stdout().toString()).toBe(`${there.pid}\n`)
  })

  it('one that was ended meanwhile is replaced', async () => {
    const there = await waiting({ argv: ['/bin/sh', '-c', 'echo $$; exit 3'] })
    process.kill(Number(there.pid), 'SIGKILL')
    await expect.poll(() => readWord(`/proc/${there.pid}/stat`), PATIENCE).toMatch(/\) Z /)
    there.give()
    await finish(there)
    expect(there.memory.stdout().toString()).toMatch(/^\d+\n$/)
    expect(there.memory.stdout().toString()).not.toBe(`${there.pid}\n`)
    expect(there.memory.state.exit).toEqual({ code: 3, signal: 0, ended: '' })
  })

  it('nothing is left of the waiting when the machine is not wanted any more', async () => {
    const there = await waiting({ argv: ['true'] })
    there.memory.state.alive = false
    there.memory.machine.work = async () => undefined
    there.give()
    await there.runner.done
    expect(readWord(`/proc/${there.pid}/stat`)).not.toMatch(/\) [RSD] /)
    expect(there.memory.state.startedCount).toBe(0)
  })

  it('the processes that wait go when the runner does, however that ends', async () => {
    const there = await waiting({ argv: ['true'] })
    const runner = there.runner.child.pid!
    const parent = Number(readWord(`/proc/${there.pid}/stat`).split(') ')[1]!.split(' ')[1])
    expect(parent).not.toBe(runner)
    process.kill(runner, 'SIGKILL')
    await there.runner.done
    for (const pid of [there.pid, parent])
      await expect.poll(() => readWord(`/proc/${pid}/stat`), PATIENCE).not.toMatch(/\) [RSD] /)
  })

  it('an order whose confirmation is lost is carried out once', async () => {
    const there = await waiting({ argv: ['/bin/sh', '-c', 'echo once'] })
    const job = there.memory.machine.job(there.memory.spec.jobId)!
    const { started } = job
    job.started = async () => {
      job.started = started
      await started()
      throw new AppError('unavailable', 'nobody hears this')
    }
    there.give()
    await finish(there)
    expect(there.memory.stdout().toString()).toBe('once\n')
    expect(there.memory.state.startedCount).toBe(2)
    expect(there.memory.state.exit?.code).toBe(0)
  })

  it('a curl that makes one call at a time will do', async () => {
    const tools = talkative(['curl'], 'case " $* " in *" --next "*) exit 2 ;; esac')
    const there = await waiting({ argv: ['/bin/sh', '-c', 'echo old'] }, tools.path)
    there.give()
    await finish(there)
    expect(there.memory.stdout().toString()).toBe('old\n')
    expect(there.memory.state.startedCount).toBe(1)
  })

  it('the first frame may be lost, and grow beyond what a frame may hold, without loss', async () => {
    const script =
      'printf first; while [ ! -e go ]; do sleep 0.05; done; echo warning >&2; sleep 0.1; head -c 3000000 /dev/zero; sleep 1'
    const there = await waiting({ argv: ['/bin/sh', '-c', script] })
    const { memory, runner } = there
    const job = memory.machine.job(memory.spec.jobId)!
    const { output } = job
    job.output = async frame => {
      job.output = output
      await output(frame)
      writeFileSync(join(runner.root, 'work/go'), '')
      const printed = () => statSync(join(runner.root, 'var/lib/deputy/stdout')).size
      await expect.poll(printed, PATIENCE).toBe(3_000_005)
      throw new AppError('unavailable', 'nobody hears this')
    }
    there.give()
    await finish(there)
    expect(memory.stderr().toString()).toBe('warning\n')
    expect(memory.stdout().length).toBe(3_000_005)
    expect(memory.stdout().subarray(0, 5).toString()).toBe('first')
    expect(memory.stdout().indexOf('first', 1)).toBe(-1)
    expect(memory.state.duplicates).toBe(1)
  })

  it('a first frame that is too large is cut', async () => {
    const there = await waiting({ argv: ['/bin/sh', '-c', 'sleep 0.2; head -c 5000000 /dev/zero; echo end'] })
    there.give()
    await finish(there)
    expect(there.memory.stdout().length).toBe(5_000_004)
    for (const { size } of there.memory.state.frames) expect(size).toBeLessThanOrEqual(2 * 1024 * 1024)
  })
})
