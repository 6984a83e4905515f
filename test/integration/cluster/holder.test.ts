import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Parameters, requestFor, standbyFor } from '../../../src/cluster/remote/request.ts'
import { waitFor } from '../../support/sshlab.ts'

const withoutPerl = spawnSync('perl', ['-e', '1']).status !== 0

/** The program of a node on this computer, with a Perl that can be stopped where a race would be decided. */
describe.skipIf(withoutPerl)(`what holds a command${withoutPerl ? ' (skipped: no perl)' : ''}`, () => {
  let home: string
  const started: ChildProcess[] = []
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'holder-'))
  })
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL')
    rmSync(home, { recursive: true, force: true })
  })

  const jobs = (...parts: string[]): string => join(home, '.cache/deputy/test/jobs', ...parts)
  const flag = (name: string): string => join(home, name)
  const raise = (name: string): void => writeFileSync(flag(name), '')

  const ask = (verb: string, parameters: Parameters = {}, module?: string) => {
    const env = { ...process.env, HOME: home, ...(module && { PERL5OPT: '-MOdd', PERL5LIB: home }) }
    if (module) writeFileSync(join(home, 'Odd.pm'), `package Odd; ${WAIT} BEGIN { ${module} } 1;`)
    const child = spawn('sh', [], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    started.push(child)
    const request = { D_OWNER: 'test', D_ID: 'one', D_PLAIN: '', D_FROM: '0', ...parameters }
    child.stdin.end(requestFor(request, 'deputy-mark', verb)(undefined))
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    return new Promise<{ code: number | null; text: string }>(resolve =>
      child.once('close', code => resolve({ code, text: text.replace('deputy-mark\n', '') })),
    )
  }

  const run = (script: string, module?: string) => {
    const words = Buffer.from(`bash\0-c\0${script}\0`).toString('hex')
    const fixed = { D_CMD: '', D_ENV: '', D_ENVX: '', D_CWD: '', D_WORK: 'w', D_MEMO: 'bWVtbw==' }
    const limits = { D_TIMEOUT: '60', D_GRACE: '5', D_KEEP: '1000 1000' }
    return ask('run', { ...fixed, ...limits, D_ARGX: words }, module)
  }

  it('starts it on a file system that cannot put one directory in the place of another', async () => {
    const refuse = '*CORE::GLOBAL::rename = sub { -d $_[0] ? 0 : CORE::rename($_[0], $_[1]) }'
    expect((await run('echo done', refuse)).text).toBe('s 1\no 5\ndone\nx 0 exit 0 0\n')
    expect(readdirSync(jobs())).toEqual(['one'])
    expect(readFileSync(jobs('one', 'memo'), 'utf8')).toBe('bWVtbw==')
  })

  it('does not start it when it is cleaned up in the moment it gets its name', async () => {
    const pause =
      '*CORE::GLOBAL::rename = sub { if (-d $_[0]) { touch("naming"); await("cleaned") } CORE::rename($_[0], $_[1]) }'
    const running = run('touch "$HOME/ran"', pause)
    await waitFor(() => existsSync(flag('naming')))
    expect((await ask('release')).text).toBe('g one\n')
    raise('cleaned')
    expect((await running).text).toMatch(/^n it was given up/)
    expect(existsSync(flag('ran'))).toBe(false)
    expect(readdirSync(jobs())).toEqual(['one'])
    expect(readdirSync(jobs('one'))).toEqual(['never'])
  })

  it('keeps its record apart from that of another node with the same home and the same number', async () => {
    writeFileSync(join(home, 'Same.pm'), 'package Same; BEGIN { $$ = 4242 } 1;')
    const env = { ...process.env, HOME: home, PERL5OPT: '-MSame', PERL5LIB: home }
    const spares = (): string[] =>
      existsSync(jobs()) ? readdirSync(jobs()).filter(name => existsSync(jobs(name, 'index'))) : []
    const waiting = [0, 1].map(() => {
      const child = spawn('sh', [], { env, stdio: ['pipe', 'ignore', 'inherit'] })
      started.push(child)
      child.stdin.write(standbyFor('test').script)
      return child
    })
    await waitFor(() => spares().length === 2)
    for (const child of waiting) child.stdin.end()
    await waitFor(() => readdirSync(jobs()).length === 0)
  })

  it('is not ended by the news for which it has not yet an ear', async () => {
    const running = run('until [ -e "$HOME/end" ]; do sleep 0.05; done')
    await waitFor(() => existsSync(jobs('one', 'index')))
    const follower = readFileSync(jobs('one', 'follower'), 'utf8')
    const following = ask('attach', {}, 'touch("loading"); await("told")')
    await waitFor(
      () => existsSync(flag('loading')) && readFileSync(jobs('one', 'follower'), 'utf8') !== follower,
    )
    process.kill(Number(readFileSync(jobs('one', 'follower'), 'utf8')), 'SIGUSR1')
    raise('told')
    raise('end')
    expect((await following).text).toMatch(/^s 0\nx 0 exit \d+ \d+\n$/)
    await running
  })
})

/** For modules that stand in Perl's way: bounded, as a test that fails must end. */
const WAIT = `
sub touch { open(my $h, '>', "$ENV{HOME}/$_[0]") }
sub await { for (1 .. 2000) { return if -e "$ENV{HOME}/$_[0]"; select undef, undef, undef, 0.01 } }
`
