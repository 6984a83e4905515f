// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell scripts
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { assertAllowed, checkCommand } from '../../../src/nodes/policy/command-policy.ts'

const ruleOf = (command: string, options = {}): string => {
  const verdict = checkCommand(command, options)
  return verdict.allowed ? 'allowed' : verdict.rule
}

describe('destroying the root is refused', () => {
  it.each([
    'f() { rm -rf "$1"; }; f /',
    'function rm { command rm -rf /; }; rm',
    'env -C / rm -rf .',
    'env -u X --chdir=/ rm -rf *',
    'sudo -D / rm -rf *',
    'echo / | xargs sh -c \'rm -rf "$0"\'',
    "fish -c 'rm -rf /'",
    'ls > >(rm -rf /)',
    'cat <<E\n$(rm -rf /)\nE',
    'echo ${x:-$(rm -rf /)}',
    'for i in $(rm -rf /); do :; done',
    'rm -rf /',
    'rm -fr /',
    'rm  -rf   /',
    'rm -r -f /',
    'rm -r -f --no-preserve-root /',
    'rm --recursive --force /',
    'rm --recurs /',
    'rm -R /',
    'rm / -rf',
    'rm -rf -- /',
    'rm -rf /*',
    'rm -rf //',
    'rm -rf /.',
    'rm -rf /./',
    'rm -rf /../..',
    'rm -rf /tmp/..',
    'rm -rf /tmp/../',
    'rm -rf /usr/../*',
    'rm -rf /.*',
    'rm -rf /?*',
    'rm -rf /[a-z]*',
    'rm -rf /{bin,etc,usr}/../',
    'rm -rf /proc/self/root',
    'rm -rf /proc/1/root/*',
    'rm -rf ../../../../../../../..',
    'rm -rf "/"',
    "rm -rf '/'",
    'r\'m\' -r"f" /',
    'r\\m -rf /',
    '\\rm -rf /',
    '/bin/rm -rf /',
    '/usr/bin/../bin/rm -rf /',
    "rm -rf $'\\x2f'",
    "$'\\x72m' -rf /",
    'X=/; rm -rf $X',
    'X=/ && rm -rf "$X"',
    'X=/; rm -rf ${X}',
    'export X=/; rm -rf $X',
    'declare X=/; rm -rf $X',
    'local X=/; rm -rf $X',
    'rm -rf ${X:-/}',
    'rm -rf ${X-/}',
    'rm -rf "${X:=/}"',
    'rm -rf $UNSET/',
    'rm -rf "$BUILD_DIR"/*',
    'rm -rf /$SUFFIX',
    'args="-rf /"; rm $args',
    'args=(-rf /); rm "${args[@]}"',
    'cmd="rm -rf /"; $cmd',
    'cmd=rm; $cmd -rf /',
    'a=r; b=m; $a$b -rf /',
    'if true; then X=/; fi; rm -rf $X',
    'X=/tmp; [ -f y ] && X=/; rm -rf $X',
    'for d in /tmp /; do rm -rf $d; done',
    'for d in /tmp /; do rm -rf "$d"; done',
    'set -- /; rm -rf "$@"',
    'f() { rm -rf "$1"; }; f /',
    'f() { g "$@"; }; g() { rm -rf "$2"; }; f x /',
    'cd /; rm -rf *',
    'cd / && rm -rf *',
    'cd / && rm -rf .',
    '(cd / && rm -rf ./*)',
    'cd /usr && cd .. && rm -rf *',
    'pushd /; rm -rf *',
    'sudo rm -rf /',
    'sudo -n rm -rf /',
    'sudo -u root -- rm -rf /',
    'sudo -nu bob rm -rf /',
    'sudo FOO=1 rm -rf /',
    'doas rm -rf /',
    'doas -u root rm -rf /',
    'pkexec rm -rf /',
    'env rm -rf /',
    'env -i A=1 B=2 rm -rf /',
    'env -S "rm -rf /"',
    'nice rm -rf /',
    'nice -n 19 rm -rf /',
    'nice -19 rm -rf /',
    'nohup rm -rf / &',
    'timeout 5 rm -rf /',
    'timeout -k 3 -s KILL 5s rm -rf /',
    'setsid rm -rf /',
    'ionice -c 3 rm -rf /',
    'stdbuf -oL rm -rf /',
    'time rm -rf /',
    'command rm -rf /',
    'exec rm -rf /',
    'busybox rm -rf /',
    'sudo nice -n 5 env A=b timeout 9 rm -rf /',
    'echo / | xargs rm -rf',
    'echo / | sudo xargs -n1 rm -rf',
    'printf "%s\\n" / | xargs -I{} rm -rf {}',
    'xargs rm -rf <<< /',
    'find / -delete',
    'find / -type f -delete',
    'find / -xdev -exec rm -rf {} +',
    'find / -exec rm {} \\;',
    'find / -exec sh -c \'rm -rf "$1"\' x {} \\;',
    'find / ! -name keep -delete',
    'find / | xargs rm -rf',
    'find -L / -name "*" -delete',
    "bash -c 'rm -rf /'",
    'sh -c "rm -rf /"',
    "bash -lc 'rm -rf /'",
    "sudo bash -c 'rm -rf /'",
    'bash -c \'bash -c "rm -rf /"\'',
    'bash -c \'rm -rf "$1"\' x /',
    "X=/ bash -c 'rm -rf $X'",
    'eval "rm -rf /"',
    'eval rm -rf /',
    'eval \'eval "rm -rf /"\'',
    "su -c 'rm -rf /'",
    "su - root -c 'rm -rf /'",
    'runuser -u root -- rm -rf /',
    "ssh otherhost 'rm -rf /'",
    'ssh -p 22 me@otherhost rm -rf /',
    "trap 'rm -rf /' EXIT",
    "flock /tmp/l -c 'rm -rf /'",
    'echo hi\nrm -rf /',
    'echo hi;rm -rf /',
    'echo hi&rm -rf /',
    'true || rm -rf /',
    '(rm -rf /)',
    '{ rm -rf /; }',
    'echo $(rm -rf /)',
    'echo `rm -rf /`',
    'echo "$(rm -rf /)"',
    'X=$(rm -rf /)',
    '[[ -n $(rm -rf /) ]]',
    '(( $(rm -rf /) ))',
    'cat <(rm -rf /)',
    'rm -rf $(echo /)',
    'rm -rf `echo /`',
    'rm -rf "$(printf \'%s\' /)"',
    'if false; then :; else rm -rf /; fi',
    'case x in *) rm -rf /;; esac',
    'bash <<EOF\nrm -rf /\nEOF',
    "sh <<'EOF'\nrm -rf /\nEOF",
    'X=/; bash <<EOF\nrm -rf $X\nEOF',
    'bash <<< "rm -rf /"',
    "echo 'rm -rf /' | sh",
    "echo 'rm -rf /' | tee x | sudo bash -s",
    'coproc rm -rf /',
    'rm -rf \\\n/',
    '! rm -rf /',
    'mv / /tmp/x',
    'mv /* /tmp/x',
    'rsync -a --delete empty/ /',
    'rm -rf ~/../..',
  ])('%j', command => {
    expect(ruleOf(command)).toBe('destroy-root')
  })
})

describe('deleting system directories and homes is refused', () => {
  it.each([
    'rm -rf /etc',
    'rm -rf /usr/',
    'rm -rf /var/*',
    'sudo rm -r /home',
    'cd /; rm -rf etc',
    'rm -rf /System',
  ])('%j', command => expect(ruleOf(command)).toBe('destroy-system-directory'))
  it.each(['rm -rf ~', 'rm -rf ~/', 'rm -rf $HOME', 'rm -rf "$HOME"/*', 'cd; rm -rf *', 'cd ~ && rm -rf .'])(
    '%j',
    command => expect(ruleOf(command)).toBe('destroy-home'),
  )
})

describe('writing to a whole device is refused', () => {
  it.each([
    'dd if=/dev/zero of=/dev/sda',
    'dd of=/dev/sda if=x.img bs=4M',
    'sudo dd of="/dev/nvme0n1" if=x',
    'D=/dev/sda; dd if=x of=$D',
    'cat x >/dev/sda',
    'cat x > /dev/sda1',
    '> /dev/sda',
    'echo x >> /dev/vda',
    'echo x >| /dev/xvda',
    'echo x &> /dev/mmcblk0',
    'echo x 1<> /dev/sda',
    '{ echo x; } > /dev/sda',
    'while :; do echo; done > /dev/sda',
    'cp x.img /dev/sdb',
    'tee /dev/sda < x',
    'echo | sudo tee -a /dev/mapper/vg-root',
    'cat x > /dev//sda',
    'cat x > /dev/../dev/sda',
    'cd /dev && cat x > sda',
    'dd if=x of=/dev/disk/by-id/ata-x',
    'dd if=x of=/dev/rdisk2',
    'dd if=x of=/dev/vg0/root',
    'for d in a b; do dd if=/dev/zero of=/dev/sd$d; done',
    "bash -c 'dd if=x of=/dev/sda'",
    'echo x > /dev/mem',
  ])('%j', command => expect(ruleOf(command)).toBe('write-device'))

  it.each([
    'mkfs.ext4 /dev/sda',
    'mkfs -t ext4 /dev/sda1',
    'sudo mkfs.xfs -f /dev/nvme0n1p2',
    'mke2fs /dev/vdb',
    'mkswap /dev/sda2',
    'wipefs -a /dev/sda',
    'wipefs --all --force /dev/sda',
    'shred -n 1 /dev/sda',
    'shred /dev/sd*',
    'blkdiscard /dev/nvme0n1',
    'sgdisk --zap-all /dev/sda',
    'parted -s /dev/sda mklabel gpt',
    'cryptsetup luksFormat /dev/sda2',
    'nvme format /dev/nvme0',
    'hdparm --security-erase x /dev/sda',
    'diskutil eraseDisk JHFS+ x disk2',
    'newfs /dev/sd0a /dev/sda',
    'echo y | sfdisk /dev/sda',
    'find /dev/sda -exec shred {} \\;',
  ])('%j', command => expect(ruleOf(command)).toBe('format-device'))
})

describe('changing every permission is refused', () => {
  it.each([
    'chmod -R 777 /',
    'chmod 777 -R /*',
    'chown -R me /',
    'sudo chown --recursive me:me /usr',
    'chgrp -hR x /etc',
  ])('%j', command => expect(ruleOf(command)).toBe('recursive-permissions'))
})

describe('destroying volumes and system directories is refused', () => {
  it.each([
    'lvremove -f vg/root',
    'vgremove -y vg',
    'zpool destroy tank',
    'ddrescue image /dev/sda',
    'qemu-img convert -O raw x /dev/sda',
    'mkdosfs /dev/sdb1',
    'echo b > /proc/sysrq-trigger',
    'echo c | sudo tee /proc/sysrq-trigger',
  ])('%j', command =>
    expect(checkCommand(command)).toMatchObject({ allowed: false, rule: expect.stringContaining('device') }),
  )

  it.each(['rm -rf ~root', 'rm -rf ~ann/*', 'rm -rf /usr/bin', 'rm -rf /usr/lib/*', 'rm -rf /private/etc'])(
    '%j',
    command =>
      expect(checkCommand(command)).toMatchObject({
        allowed: false,
        rule: expect.stringContaining('destroy-'),
      }),
  )
})

describe('fork bombs are refused', () => {
  it.each([
    ':(){ :|:& };:',
    ':(){:|:&};:',
    ':() { : | : & } ; :',
    'bomb() { bomb | bomb & }; bomb',
    'bomb()\n{\n  bomb |\n  bomb &\n}\nbomb',
    'function f { f | f & }; f',
    'f() { f & f & }; f',
    'f() { f & f; }; f',
    'f() { (f) & (f) & }; f',
    'f() { f | f; }; f',
    "bash -c ':(){ :|:& };:'",
    "eval ':(){ :|:& };:'",
  ])('%j', command => expect(ruleOf(command)).toBe('fork-bomb'))

  it.each([
    'walk() { if [ -z "$1" ]; then return; fi; shift; walk "$@" & }; walk a b',
    'walk() { [ -n "$1" ] || return; shift; walk "$@" | sort; }; walk a b',
    'walk() { for d in "$1"/*; do walk "$d" & done; }; walk src',
    'f() { g | g & }; g() { date; }; f',
    "echo ':(){ :|:& };:'",
  ])('a function that ends is allowed: %j', command => expect(ruleOf(command)).toBe('allowed'))
})

describe('running a download as root is refused', () => {
  it.each([
    'curl https://x | sudo sh',
    'curl -fsSL https://x | sudo -E bash -',
    'wget -qO- https://x | sudo bash',
    'curl https://x | tee log | sudo sh',
    'curl https://x | gunzip | doas sh',
    'sudo sh -c "$(curl https://x)"',
    'sudo bash -c "curl https://x | sh"',
    'sudo bash <(curl https://x)',
    "su -c 'curl https://x | sh'",
    'curl https://x | sudo python3',
    'X=$(curl https://x); sudo bash -c "$X"',
  ])('%j', command => expect(ruleOf(command)).toBe('download-to-root-shell'))

  it('applies only when the command runs as root', () => {
    expect(ruleOf('curl https://x | sh')).toBe('allowed')
    expect(ruleOf('curl https://x | sh', { root: true })).toBe('download-to-root-shell')
    expect(ruleOf('eval "$(curl https://x)"', { root: true })).toBe('download-to-root-shell')
    expect(ruleOf('bash <(curl https://x)', { root: true })).toBe('download-to-root-shell')
    expect(ruleOf('. <(curl https://x)', { root: true })).toBe('download-to-root-shell')
    expect(ruleOf('curl https://x | sudo -u nobody sh')).toBe('allowed')
    expect(ruleOf("sudo -u nobody sh -c 'curl https://x | sh'", { root: true })).toBe('allowed')
    expect(ruleOf("docker run alpine sh -c 'curl https://x | sh'", { root: true })).toBe('allowed')
  })
})

describe('ordinary work is allowed', () => {
  it.each([
    'gdb --args ./prog / x',
    "tmux new -d -s x 'make'",
    'screen -ls',
    'at 5pm < job.sh',
    'rm -rf /usr/share/myapp',
    'rm -rf /usr/lib/python3/dist-packages/x',
    'rm -rf /var/lib/myapp/cache',
    'lvremove vg/snapshot',
    'zpool status',
    "awk '/rm -rf/ { print }' x",
    'awk \'{ system("ls " $1) }\' x',
    'perl -e \'print "rm -rf /"\'',
    'python3 -c \'import shutil; shutil.rmtree("build")\'',
    'python3 -c "import subprocess; subprocess.run(\'ls /\', shell=True)"',
    'env -C build rm -rf *',
    'make -j$(( $(nproc) + 1 ))',
    'rm() { command rm -i "$@"; }; rm x',
    'rm -rf ~ann/build',
    'ddrescue /dev/sda image log',
    'qemu-img convert -O qcow2 a b',
    'cat > run.sh <<E\nrm -rf build\nE\nsh run.sh',
    'bash -c \'rm -rf "$1"\' _ build',
    'echo 1 > /proc/sys/vm/drop_caches',
    'docker run --rm -v /:/host alpine ls /host',
    'git clean -xdf',
    'tar xzf x.tgz -C /',
    'find / -xdev -size +1G -exec ls -l {} +',
    'cp -r / /mnt/backup',
    'rm -rf ./build',
    'rm -rf build dist node_modules',
    'rm -rf /tmp/x',
    'rm -rf /tmp/build/*',
    'rm -rf "$HOME/.cache/x"',
    'rm -rf ~/build',
    'rm -rf *',
    'rm -rf .',
    'rm -rf ../build',
    'rm -f /etc/foo.conf',
    'rm /tmp/a',
    'rm -rf /var/lib/foo',
    'rm -rf /home/me/x',
    'rm -rf ${DIR:?}/x',
    'rm -rf "${DIR:?}"/*',
    'tmp=$(mktemp -d); rm -rf "$tmp"/*',
    'trap \'rm -rf "$tmp"/*\' EXIT; tmp=$(mktemp -d)',
    'X=/; cd $X; X=/tmp/foo; rm -rf $X',
    'd=/tmp/x; rm -rf "$d"/',
    'cd /tmp/x && rm -rf *',
    'cd "$1" && rm -rf *',
    'for i in 1 2 3; do rm -rf /tmp/$i; done',
    'systemctl start nginx',
    'git merge main',
    "awk '{print $1}' /etc/passwd",
    'grep -r "rm -rf /" .',
    'echo "rm -rf /"',
    "echo 'rm -rf /' > notes.txt",
    'git commit -m "never rm -rf / again"',
    'cat <<EOF > x\nrm -rf /\nEOF',
    '# rm -rf /\necho done',
    'ls /',
    'find / -name core -delete',
    'find . -delete',
    'find /tmp/x -type f -delete',
    'find . -name "*.o" -exec rm {} +',
    'find . -name "*.o" | xargs rm -f',
    'find / -maxdepth 1 -exec ls {} +',
    'ls | xargs rm -rf',
    'chmod -R u+w ./build',
    'chown -R me /srv/app/x',
    'chmod 755 /',
    'dd if=/dev/zero of=disk.img bs=1M count=10',
    'dd if=/dev/sda of=backup.img',
    'dd if=x of=/dev/null',
    'echo x > /dev/null 2>&1',
    'echo x > /dev/stderr',
    'cat /dev/urandom | head -c 10 > /dev/shm/x',
    'echo hi > /dev/tcp/localhost/80',
    'echo 1 > /dev/ttyUSB0',
    'mkfs.ext4 disk.img',
    'wipefs /dev/sda',
    'fdisk -l /dev/sda',
    'shred secret.txt',
    'f() { echo hi; }; f | f',
    'f() { [ "$1" -le 0 ] && return; f $(($1 - 1)) & wait; }; f 3',
    'walk() { for d in "$1"/*/; do walk "$d" & done; wait; }; walk .',
    'fact() { if [ $1 -le 1 ]; then echo 1; else echo $(( $1 * $(fact $(( $1 - 1 ))) )); fi; }; fact 5',
    'while true; do date; sleep 5; done',
    'for i in 1 2 3; do sleep 1 & done; wait',
    'curl https://x | jq .',
    'curl https://x -o f && less f',
    'sudo apt-get install -y curl',
    "python3 -c 'print(1)'",
    'mv build /tmp/x',
    'rsync -a --delete build/ /srv/www/site/',
    'make -C /usr/src/linux clean',
    'if then fi (',
    '"unterminated',
    '',
  ])('%j', command => expect(checkCommand(command)).toEqual({ allowed: true }))

  it('uses the environment of the command', () => {
    expect(ruleOf('rm -rf "$DIR"/*')).toBe('destroy-root')
    expect(ruleOf('rm -rf "$DIR"/*', { env: { DIR: '/srv/x' } })).toBe('allowed')
    expect(ruleOf('rm -rf "$DIR"', { env: { DIR: '/' } })).toBe('destroy-root')
    expect(ruleOf('rm -rf *', { cwd: '/' })).toBe('destroy-root')
  })
})

describe('a refusal', () => {
  it('names the rule, the path and the next step', () => {
    try {
      assertAllowed('sudo rm -fr /')
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(AppError)
      const denied = error as AppError
      expect(denied.code).toBe('denied')
      expect(denied.message).toContain("rule 'destroy-root'")
      expect(denied.message).toContain('(/)')
      expect(denied.hint).toContain('submit_job')
    }
  })

  it('names the unset variable', () => {
    const verdict = checkCommand('rm -rf "$BUILD_DIR"/*')
    expect(verdict).toMatchObject({ allowed: false, reason: expect.stringContaining('$BUILD_DIR') })
  })

  it('can come from a rule of the user', () => {
    const deny = [{ name: 'no-destroy', command: 'terraform destroy', reason: 'ask the platform team' }]
    expect(checkCommand('cd infra && sudo terraform -chdir=x destroy -auto-approve', { deny })).toEqual({
      allowed: false,
      rule: 'no-destroy',
      reason: 'ask the platform team',
    })
    expect(ruleOf("bash -c 'terraform destroy'", { deny })).toBe('no-destroy')
    expect(ruleOf('terraform plan', { deny })).toBe('allowed')
    expect(ruleOf('echo terraform destroy', { deny })).toBe('allowed')
  })

  it('can be turned off for each rule', () => {
    expect(ruleOf('rm -rf ~', { disable: ['destroy-home'] })).toBe('allowed')
    expect(ruleOf('rm -rf ~; rm -rf /', { disable: ['destroy-home'] })).toBe('destroy-root')
  })

  it('covers a NUL byte; an empty command is an error', () => {
    expect(ruleOf('echo a\0b')).toBe('nul-byte')
    expect(() => assertAllowed('  \n')).toThrow('empty')
  })
})

describe('hostile input', () => {
  const fragments = [
    'rm',
    '-rf',
    '/',
    '*',
    '$(',
    ')',
    '`',
    '"',
    "'",
    '{',
    '}',
    '|',
    '&',
    ';',
    '\n',
    '$X',
    '${',
    ':-',
    'X=',
    'f()',
    'bash -c',
    'eval',
    '<<EOF\n',
    'EOF\n',
    '<(',
    '((',
    '))',
    '[[',
    ']]',
    'for x in',
    'do',
    'done',
    'if',
    'then',
    'fi',
    'case',
    'esac',
    '\\',
    '\uE000',
    '\uE003',
    '~',
    'cd',
    'xargs',
    'find',
    '-exec',
    '{}',
    'sudo',
    'while',
    'function',
    'coproc',
    'constructor',
    'toString',
    '__proto__',
    'trap',
    'a[0]=',
    '=(',
    '${!x}',
    '${x//a/b}',
    '${x:0:1}',
    '{a,b}',
    '{1..9}',
    'alias',
    'f',
    'set --',
    '$@',
  ] as const

  it('never makes the interpreter throw', () => {
    const script = fc
      .array(fc.oneof(fc.constantFrom(...fragments), fc.string({ maxLength: 6 })), { maxLength: 40 })
      .chain(parts => fc.constantFrom('', ' ').map(glue => parts.join(glue)))
    fc.assert(
      fc.property(script, text => {
        expect(typeof checkCommand(text).allowed).toBe('boolean')
      }),
      { numRuns: 3000 },
    )
  })

  it('does not hide a refused command', () => {
    const word = fc.stringMatching(/^[a-z]{1,8}$/)
    fc.assert(
      fc.property(word, word, fc.constantFrom(';', '\n', '&&', '||', '|', '&'), (a, b, glue) => {
        expect(
          ruleOf(`echo ${a} ${glue} rm -rf / ${glue === '&' ? '' : glue} ${glue === '&' ? '' : `echo ${b}`}`),
        ).toBe('destroy-root')
      }),
    )
  })

  it.each([
    ['deep subshells', `${'('.repeat(5000)}rm -rf /`],
    ['deep substitutions', '$('.repeat(5000)],
    ['deep quotes', `${'eval '.repeat(3000)}x`],
    ['many braces', `echo ${'{a,b}'.repeat(60)}`],
    ['nested braces', `echo ${'{a,'.repeat(500)}b${'}'.repeat(500)}`],
    ['doubling variables', `a=xx; ${Array.from({ length: 60 }, () => 'a=$a$a').join('; ')}; rm -rf $a`],
    ['aliases of aliases', 'alias a=b b=a; a'],
    ['doubling branches', Array.from({ length: 200 }, (_, i) => `[ x ] && v=$v${i}`).join('; ')],
    ['mutual recursion', 'a() { b; b; }; b() { a; a; }; a'],
    ['wide recursion', 'f() { f; f; f; f; f; f; f; f; }; f'],
    ['a self-eval', 'x=\'eval "$x"\'; eval "$x"'],
    ['globs', `rm -rf /${'*a'.repeat(5000)}`],
    ['a long line', `echo ${'x '.repeat(100_000)}`],
    ['many loops', `${'for i in 1 2 3 4 5 6 7 8; do '.repeat(30)}:${'; done'.repeat(30)}`],
    ['a large script', 'echo hello | grep h > /dev/null\n'.repeat(4000)],
  ])('is judged in time: %s', (_, script) => {
    const started = process.cpuUsage()
    checkCommand(script)
    const { user, system } = process.cpuUsage(started)
    expect((user + system) / 1000).toBeLessThan(1000)
  })
})
