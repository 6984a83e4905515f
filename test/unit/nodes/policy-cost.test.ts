// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell scripts
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkCommand, type PolicyOptions } from '../../../src/nodes/policy/command-policy.ts'

const ruleOf = (command: string, options: PolicyOptions = {}): string => {
  const verdict = checkCommand(command, options)
  return verdict.allowed ? 'allowed' : verdict.rule
}

describe('a long script', () => {
  it('of plain lines is read completely', () => {
    const lines = 'echo hello | grep h > /dev/null\n'.repeat(4000)
    expect(ruleOf(lines)).toBe('allowed')
    expect(ruleOf(`${lines}rm -rf /`)).toBe('destroy-root')
  })

  it('above the size limit is refused', () => {
    expect(checkCommand('# \n'.repeat(60_000))).toMatchObject({
      allowed: false,
      rule: 'too-complex',
      reason: 'it is longer than 128 KiB',
    })
  })

  it('that takes too many steps is refused unless the rule is off', () => {
    const loops = 'for i in 1 2 3 4 5 6 7 8; do '.repeat(8)
    const tangled = `${loops}:${'; done'.repeat(8)}`
    expect(ruleOf(tangled)).toBe('too-complex')
    expect(ruleOf(tangled, { disable: ['too-complex'] })).toBe('allowed')
    const deep = `${'eval '.repeat(40)}true`
    expect(ruleOf(deep)).toBe('too-complex')
    expect(ruleOf(`rm -rf /; ${deep}`, { disable: ['too-complex'] })).toBe('destroy-root')
  })

  it('with many calls of one function is read completely', () => {
    const log =
      'log() { if [ -n "$V" ]; then for i in a b c; do echo "$(date) $i $1" | tee -a log; done; fi; }'
    const calls = Array.from({ length: 1500 }, (_, i) => `log "step ${i} of many"`).join('\n')
    const clean = 'clean() { rm -rf "$1"; }\nclean build'
    expect(ruleOf(`${log}\n${clean}\n${calls}\nclean dist`)).toBe('allowed')
    expect(ruleOf(`${log}\n${clean}\n${calls}\nclean dist; clean /`)).toBe('destroy-root')
    expect(ruleOf(`${log}\n${calls}\nfor d in /tmp/x /; do rm -rf "$d"; done`)).toBe('destroy-root')
    expect(ruleOf(`${log}\n${calls}\nrm -rf "$UNSET"/*`)).toBe('destroy-root')
  })

  // Interpreting every call of every function made these scripts too complex.
  const scripts = ['apt-key', 'gpgrt-config', 'xdg-open', 'xdg-settings', 'gettextize', 'ucf']
  it.each(scripts.map(name => `/usr/bin/${name}`).filter(existsSync))(
    'of the system is not too complex: %s',
    path => {
      expect(ruleOf(readFileSync(path, 'utf8'), { root: true })).not.toBe('too-complex')
    },
  )

  it.each([
    ['many variables and many pipes', `${assignments(4000)}\n${'true | true\n'.repeat(4000)}`],
    ['doubling text in a loop', 'x=$(printf %0100d 1); while :; do x=$x$x; done; '.repeat(200)],
    ['files that grow', `echo x > f\n${'cat f f > g; cat g g > f\n'.repeat(2000)}`],
    ['evaluated comments', `c="#${'c'.repeat(60_000)}"\n${'eval "$c"\n'.repeat(5000)}`],
    ['many functions', Array.from({ length: 3000 }, (_, i) => `f${i}() { f${i + 1}; }`).join('\n')],
    ['many calls', `f() { echo "$1"; }\n${'f a; f b\n'.repeat(10_000)}`],
    [
      'many branches',
      Array.from(
        { length: 2000 },
        (_, i) => `if [ -n "$A${i}" ]; then A${i}=$(echo b | sed s/b/c/); fi`,
      ).join('\n'),
    ],
    [
      'much that is shown',
      `${assignments(1500).replace(/^v(\d+)=.*$/gm, '[ -n "$v$1" ] || exit')}\n${'if x; then y; fi\n'.repeat(3000)}`,
    ],
    ['many separators', `IFS=,; x=a,b,c\n${'echo $x $x\n'.repeat(8000)}`],
    ['a long text', `cat <<E\n${'line $x\n'.repeat(15_000)}E`],
    [
      'a makefile again and again',
      `cat > Makefile <<'E'\n${'\trm -rf $(x)\n'.repeat(5000)}E\n${'make\n'.repeat(2000)}`,
    ],
    ['words that may be commands', `foo ${'rm rm rm '.repeat(10_000)}`],
    ['scripts that may be run', 'foo bash -c "foo bash -c x"\n'.repeat(4000)],
    ['code full of quotes', `python3 -c '${'run("'.repeat(20_000)}'`],
    ['code full of brackets', `python3 -c '${'run(["a" '.repeat(5000)}'`],
    ['code full of calls', `python3 -c '${'run(x) '.repeat(2300)}'`],
    ['a schedule of spaces', `echo '${'* '.repeat(30_000)}' | crontab -`],
    ['brackets in a pattern', `rm -rf /${'[a'.repeat(20_000)}`],
    ['long removal', `x=${'ab'.repeat(30_000)}; ${'y=${x##*[c]};'.repeat(300)}`],
    ['deep substitutions', '$('.repeat(5000)],
  ])('built to exhaust the interpreter is judged in time: %s', (_, script) => {
    const started = process.cpuUsage()
    checkCommand(script)
    const { user, system } = process.cpuUsage(started)
    // Usually 50 ms; more with a cold start on a busy machine.
    expect((user + system) / 1000).toBeLessThan(1000)
  })
})

function assignments(count: number): string {
  return Array.from({ length: count }, (_, i) => `v${i}=${i}`).join('\n')
}
