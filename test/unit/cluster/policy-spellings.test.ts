// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell scripts
import { describe, expect, it } from 'vitest'
import { checkCommand, type PolicyOptions } from '../../../src/cluster/policy/check.ts'

const ruleOf = (command: string, options: PolicyOptions = {}): string => {
  const verdict = checkCommand(command, options)
  return verdict.allowed ? 'allowed' : verdict.rule
}

describe('a file that the script itself wrote is read when it is run', () => {
  it.each([
    'echo "rm -rf /" > x.sh; sh x.sh',
    'echo "rm -rf /" > x.sh && chmod +x x.sh && ./x.sh',
    'cat > x.sh <<EOF\nrm -rf /\nEOF\nbash x.sh',
    "cat <<'EOF' > x.sh\nrm -rf /\nEOF\nbash x.sh",
    '{ echo "#!/bin/sh"; echo "rm -rf /"; } > /tmp/x; chmod 755 /tmp/x; /tmp/x',
    'echo "rm -rf /" | tee x.sh >/dev/null; sudo bash x.sh',
    'printf "rm -rf /\\n" >> x.sh; source x.sh',
    'echo "rm -rf /" > x; . ./x',
    'echo "rm -rf /" > x; sh < x',
    'echo "rm -rf /" > x; cat x | sh',
    'echo "rm -rf /" > x; cp x y; sh y',
    'echo "rm -rf /" > x; mv x bin; sh bin/x',
    'cd sub && echo "rm -rf /" > x && sh ./x',
    'echo "rm -rf /" > a/../x; sh x',
    'f=$(mktemp); echo "rm -rf /" > "$f"; sh "$f"',
    'echo \'rm -rf "$1"\' > x; sh x /',
    'if true; then echo "rm -rf /" > x; fi; sh x',
    'echo ": nothing" > x && echo "rm -rf /" > x && sh x',
    'echo rm -rf / | dd of=x; sh x',
    'echo "rm -rf /" > >(sh)',
    'echo "rm -rf /" | tee >(sh)',
    'echo "rm -rf /" | at now + 1 minute',
    'echo "* * * * * rm -rf /" | crontab -',
    'echo "@reboot rm -rf /" > t; crontab t',
  ])('%j', command => expect(ruleOf(command)).toBe('destroy-root'))

  it.each([
    'echo "rm -rf /" > x.sh',
    'echo "rm -rf /" > x.sh; cat x.sh',
    'echo "rm -rf /" > a.sh; sh b.sh',
    'echo "rm -rf /" > x; echo "echo hi" > x; sh x',
    'a=$(mktemp); b=$(mktemp); echo "rm -rf /" > "$a"; echo true > "$b"; sh "$b"',
    'echo "rm -rf /" 2> x.sh; sh x.sh',
    'cat > Makefile <<EOF\nclean:\n\trm -rf build\nEOF\nmake clean',
    'echo "echo hi; sh x" > x; sh x',
    'printf "#!/usr/bin/env python3\\nprint(1)\\n" > x.py; chmod +x x.py; ./x.py',
    'echo "0 3 * * * /usr/local/bin/backup" | crontab -',
    'crontab -l',
    'echo "make test" | at 22:00',
    'atq; at -l',
  ])('while %j is allowed', command => expect(ruleOf(command)).toBe('allowed'))
})

describe('what a server sent is not run as root from a file either', () => {
  it.each([
    'curl x > a.sh && sudo sh a.sh',
    'curl -o a.sh x; sudo bash a.sh',
    'curl -fsSLo a.sh https://x; sudo bash a.sh',
    'curl -oa.sh https://x; sudo bash a.sh',
    'curl --output=a.sh https://x; sudo bash a.sh',
    'curl -fsSLO https://x/y/install.sh?v=1; sudo sh install.sh',
    'wget x -O i.sh && sudo ./i.sh',
    'wget -qO i.sh https://x && chmod +x i.sh && sudo ./i.sh',
    'wget https://x/i.sh && sudo sh i.sh',
    'wget -P /tmp https://x/i.sh && sudo sh /tmp/i.sh',
    'curl https://x | tee i.sh; sudo sh i.sh',
    'curl https://x > i.gz; gunzip -c i.gz | sudo sh',
    'curl https://x > i; tail -n +2 i | sudo bash',
    'curl https://x > i; sudo bash < i',
    'curl https://x > i; sudo python3 i',
    'curl https://x > i; sudo cp i /usr/bin/i; sudo /usr/bin/i',
    't=$(mktemp); curl https://x > $t; sudo sh $t',
    'curl https://x | tee >(sudo sh)',
    'curl https://x > >(sudo sh)',
    'curl https://x | sudo at now',
  ])('%j', command => {
    expect(ruleOf(command)).toBe('download-to-root-shell')
    expect(ruleOf(command.replaceAll('sudo ', ''), { root: true })).toBe('download-to-root-shell')
    expect(ruleOf(command.replaceAll('sudo ', ''))).toBe('allowed')
  })

  it.each([
    'curl -fsSL https://x -o x.tgz && tar xzf x.tgz && cd x && ./configure && make && sudo make install',
    'curl -LO https://x/kubectl && sudo install -m 755 kubectl /usr/local/bin/kubectl && kubectl version',
    'wget https://x/x.deb && sudo dpkg -i x.deb',
    'curl -fsSL https://x/key.gpg | sudo gpg --dearmor -o /usr/share/keyrings/x.gpg',
    'curl https://x | sudo tee /etc/apt/sources.list.d/x.list',
    'curl -s https://x > out.json; sudo systemctl restart nginx',
    'sudo curl -o /etc/motd https://x',
    'curl -o data.csv https://x && sudo python3 load.py data.csv',
  ])('while %j is allowed', command => expect(ruleOf(command)).toBe('allowed'))
})

describe('further spellings of destroying the root are refused', () => {
  it.each([
    'printf -v c "rm -rf /"; eval "$c"',
    'printf -v d %s /; rm -rf "$d"',
    'declare -n n=x; x=/; rm -rf $n',
    'x=/; declare -n n=x; rm -rf "$n"',
    'f() { local -n r=$1; rm -rf "$r"; }; x=/; f x',
    'rm -rf "${PWD%%[!/]*}"',
    'rm -rf "${HOME%%[!/]*}"',
    'cd /; rm -rf "$PWD"',
    "sh -c '$0 -rf /' rm",
    'sh -c \'"$0" -rf "$1"\' rm /',
    'cd /; ls | xargs rm -rf',
    'cd / && ls -A | xargs -I{} rm -rf {}',
    'ls | xargs -I{} rm -rf /{}',
    'cd /; for f in $(ls); do rm -rf "$f"; done',
    'echo / | parallel rm -rf',
    'echo / | parallel rm -rf {}',
    'parallel rm -rf ::: /',
    'parallel -j 4 "rm -rf {}" ::: /tmp/x /',
    'echo "rm -rf /" | parallel',
    'fish -c "rm -rf /"',
    'csh -c "rm -rf /"',
    'tcsh -c "rm -rf /"',
    'ksh93 -c "rm -rf /"',
    'zsh-5.9 -c "rm -rf /"',
    'echo "rm -rf /" | fish',
    'tar cf /dev/null --remove-files /',
    'awk \'BEGIN { system("rm -rf /") }\'',
    'python3 -c "import shutil; shutil.rmtree(\'/\')"',
    'python3 -c \'import os; os.system("rm -rf /")\'',
    'python3 -c \'import subprocess; subprocess.run(["rm", "-rf", "/"])\'',
    'python3 <<EOF\nimport shutil\nshutil.rmtree("/")\nEOF',
    'node -e "fs.rmSync(\'/\', { recursive: true })"',
    "node -e \"require('child_process').execSync('rm -rf /')\"",
    'perl -e \'system("rm -rf /")\'',
    'ruby -e \'require "fileutils"; FileUtils.rm_rf("/")\'',
    'docker run --rm -v /:/h alpine rm -rf /h',
    'docker run --rm -v /:/h alpine sh -c "rm -rf /h/*"',
    'podman run --mount type=bind,source=/,target=/mnt alpine find /mnt -delete',
    'yes "rm -rf /" | sh',
    'docker run -v=/:/h alpine rm -rf /h',
    "perl -e '`rm -rf /`'",
    'while IFS= read -r d; do rm -rf "$d"; done < <(echo /)',
    '[ -z "$D" ] && D=; rm -rf "$D"/*',
    '[ -n "$D" ] && D= && rm -rf "$D"/*',
    '[ -n $D ] && rm -rf "$D"/*',
    '[ -z "$D" ] && rm -rf "$D"/*',
    '[ -n "$D" ] || rm -rf "$D"/*',
    'if [ -n "$D" ]; then :; else rm -rf "$D"/*; fi',
    'if x; then [ -n "$D" ] || exit; fi; rm -rf "$D"/*',
    '[ -n "$D" ] && D=$E; rm -rf "$D"/*',
    'set -u; rm -rf "${D:-}"/*',
  ])('%j', command => expect(ruleOf(command)).toBe('destroy-root'))
})

describe('a variable that a test has shown not to be empty is no root', () => {
  it.each([
    '[ -n "$D" ] && rm -rf "$D"/*',
    '[[ -n $D ]] && rm -rf "$D"/*',
    '[[ $D ]] && rm -rf "$D"/*',
    '[ "$D" ] && rm -rf "$D"/*',
    'test -n "$D" && rm -rf "$D"/*',
    '[ -d "$D" ] && rm -rf "$D"/*',
    '[ -n "$D" ] && [ -d "$D" ] && rm -rf "$D"/*',
    '[ -n "$D" -a -d "$D" ] && rm -rf "$D"/*',
    '[[ -n $A && -n $D ]] && rm -rf "$D"/*',
    '[ "$D" != "" ] && rm -rf "$D"/*',
    '[ "x$D" != x ] && rm -rf "$D"/*',
    '! [ -z "$D" ] && rm -rf "$D"/*',
    '[ ! -z "$D" ] && rm -rf "$D"/*',
    '[ -z "$D" ] || rm -rf "$D"/*',
    'if [ -n "$D" ]; then rm -rf "$D"/*; fi',
    'if [ -d "${D}" ]; then echo clean; rm -rf "${D}"/*; fi',
    'if [ -z "$D" ]; then echo none; else rm -rf "$D"/*; fi',
    'if [ -z "$D" ]; then echo "not set"; exit 1; fi; rm -rf "$D"/*',
    '[ -z "$D" ] && exit 1; rm -rf "$D"/*',
    '[ -n "$D" ] || { echo "not set" >&2; exit 1; }\nrm -rf "$D"/*',
    'clean() { [ -n "$1" ] || return 1; rm -rf "$1"/*; }; clean "$DIR"',
    'while [ -n "$D" ]; do rm -rf "$D"/*; done',
    ': "${D:?}"; rm -rf "$D"/*',
    'dir=$1; [ -z "$dir" ] && dir=build; rm -rf "$dir"/*',
    'if [ -z "$D" ]; then D=build; fi; rm -rf "$D"/*',
    '[ -n "$D" ] || D=build; rm -rf "$D"/*',
    'set -eu; rm -rf "$D"/*',
    'set -euo pipefail\nrm -rf "$D"/*',
    'set -o nounset; rm -rf "$D"/*',
    'bash -euc \'rm -rf "$D"/*\'',
  ])('%j', command => expect(ruleOf(command)).toBe('allowed'))
})

describe('what a machine needs is kept', () => {
  it.each([
    'rm -rf /usr/bin',
    'rm -rf /usr/lib/',
    'rm -rf /usr/share/*',
    'rm -rf /var/lib',
    'rm -rf /var/lib/dpkg',
    'rm -rf /boot/efi',
    'rm -rf /lib/modules',
    'rm -rf /etc/ssh',
    'cd /usr; rm -rf lib',
    'rm -rf ~root',
    'tar czf x.tgz --remove-files /etc',
  ])('%j', command => expect(ruleOf(command)).toBe('destroy-system-directory'))

  it.each(['rm -rf /home/ann', 'rm -rf /home/$USER', 'rm -rf ~ann', 'rm -rf ~ann/*', 'rm -rf /Users/ann/'])(
    '%j',
    command => expect(ruleOf(command)).toBe('destroy-home'),
  )

  it.each(['> /etc/passwd', 'echo x > /etc/shadow', 'cd /etc; : > sudoers', 'echo x | tee /etc/group'])(
    '%j',
    command => expect(ruleOf(command)).toBe('destroy-system-file'),
  )

  it.each([
    'lvremove -f vg0/root',
    'vgremove --yes --force vg0',
    'zpool destroy tank',
    'zfs destroy -r tank/home',
    'sudo zfs destroy tank/home tank/x@y',
  ])('%j', command => expect(ruleOf(command)).toBe('format-device'))

  it.each([
    'sed -i d /dev/sda',
    'perl -pi -e s/a/b/ /dev/sda',
    'echo b > /proc/sysrq-trigger',
    "python3 -c \"open('/dev/sda','wb').write(b'x')\"",
  ])('%j', command => expect(ruleOf(command)).toBe('write-device'))

  it.each([
    'yes | xargs -P0 -n1 sleep',
    'yes | xargs -P 0 -I{} sleep 100 &',
    'yes | parallel -j0 sleep',
    'node -e "for(;;){fork()}"',
    "ruby -e 'loop { fork }'",
  ])('%j', command => expect(ruleOf(command)).toBe('fork-bomb'))
})

describe('everyday commands that look alike are allowed', () => {
  it.each([
    'sfdisk -d /dev/sda',
    'sfdisk --dump /dev/sda > layout',
    'sfdisk -l',
    'sfdisk --json /dev/sda',
    'sgdisk --print /dev/sda',
    'sgdisk -p /dev/sda',
    'gdisk -l /dev/sda',
    'wipefs -n -a /dev/sda',
    'parted /dev/sda print',
    'node -e "while(1){fork();break}"',
    'python3 -c "import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)"',
    'node -e "console.log(\'while you fork a repository\')"',
    'gh repo fork',
    'rm -rf /usr/local/go',
    'rm -rf /usr/share/doc/x',
    'rm -rf /usr/lib/node_modules/npm',
    'rm -rf /var/lib/docker/tmp',
    'rm -rf /var/lib/apt/lists/*',
    'rm -rf /var/cache/apt/archives/*.deb',
    'rm -rf /var/log/*.gz',
    'rm -rf /etc/nginx/sites-enabled/default',
    'rm -rf /home/ann/project/build',
    'rm -rf /home/$USER/.cache',
    'rm -rf ~ann/tmp',
    'rm -rf ~/.npm ~/.cache/pip',
    'rm -rf "$HOME"/work/*',
    'rm -rf ~+/build',
    'rm -rf "${PWD##*/}"',
    'rm -rf "${PWD}/dist"',
    'branch=$(git branch --show-current); rm -rf "/srv/${branch%%/*}"',
    'ls | xargs rm -rf',
    'ls *.o | xargs rm -f',
    'ls /tmp/x | xargs -I{} rm -rf /tmp/x/{}',
    'ls / | head',
    'cd /srv/app; ls -t | tail -n +4 | xargs rm -rf',
    'echo a b | xargs -P4 -n1 echo',
    'find . -type f | xargs -P0 gzip',
    'yes | apt-get install vim',
    'yes | head -3 | xargs -P0 -n1 echo',
    'parallel gzip ::: *.log',
    'ls *.png | parallel convert {} {.}.jpg',
    'tar czf backup.tgz /etc /home',
    'tar cf x.tar --remove-files build',
    'sed -i s/a/b/ /etc/hosts',
    'sed -n 1p /dev/sda',
    'awk \'{ print "rm -rf /" }\' x',
    'awk \'BEGIN { system("date") }\'',
    'python3 -c "import shutil; shutil.rmtree(\'build\')"',
    "python3 -c \"import subprocess; subprocess.run(['make', 'clean'])\"",
    'node -e "fs.rmSync(\'dist\', { recursive: true })"',
    'docker run --rm alpine rm -rf /',
    'docker run --rm -v "$PWD":/src -w /src node npm test',
    'docker run --rm -v /srv/x:/data alpine rm -rf /data',
    'docker run --rm -v /:/host:ro alpine cat /host/etc/os-release',
    'docker run -v /var/run/docker.sock:/var/run/docker.sock docker docker ps',
    'docker exec app rm -rf /app/cache',
    'docker build -t x . && docker push x',
    'lvs; vgs; pvs',
    'lvremove vg0/x',
    'lvremove -fn vg0/x',
    'zfs list; zpool status',
    'zfs destroy tank/home@monday',
    'zfs destroy -nv tank/home',
    'echo "ann ALL=(ALL) ALL" >> /etc/sudoers',
    'grep ann /etc/passwd > users.txt',
    'cat /etc/passwd > /tmp/passwd',
    'echo 1 > /proc/sys/net/ipv4/ip_forward',
    'fish -c "echo hi"',
    'declare -n ref=list; list=(a b); echo "${ref[@]}"',
    'printf -v stamp "%(%F)T" -1; mkdir "$stamp"',
    'printf "%s\\n" a b',
    'exec > log.txt 2>&1; make',
    'make 2>&1 | tee build.log',
    'npm ci && npm run build > build.log 2>&1',
    'diff <(sort a) <(sort b)',
    'tar cz . | ssh host "tar xz -C /srv/x"',
    'for f in *.c; do gcc -c "$f" || exit; done',
    'export PATH=$HOME/bin:$PATH; go test ./...',
    'git log --oneline | head -5 > log; cat log',
    'sh ./configure --prefix=/usr && make',
    'mkdir -p build && cd build && cmake .. && make -j8',
    'bash -c \'echo "$0"\' hello',
    'test -f x && . ./x',
    'cp -r /etc/skel /home/new',
    'mv /home/ann/a /home/ann/b',
    'chown -R ann /home/ann',
    'rsync -a --delete src/ /home/ann/src/',
  ])('%j', command => expect(checkCommand(command)).toEqual({ allowed: true }))
})

describe('a long script', () => {
  it('of plain lines is read to its end', () => {
    const lines = 'echo hello | grep h > /dev/null\n'.repeat(12_000)
    expect(ruleOf(lines)).toBe('allowed')
    expect(ruleOf(`${lines}rm -rf /`)).toBe('destroy-root')
  })

  it('that is too tangled is refused, unless that rule is switched off', () => {
    const tangled = `${'for i in 1 2 3 4 5 6 7 8; do '.repeat(30)}:${'; done'.repeat(30)}`
    expect(ruleOf(tangled)).toBe('too-complex')
    expect(ruleOf(tangled, { disable: ['too-complex'] })).toBe('allowed')
    const deep = `${'eval '.repeat(40)}true`
    expect(ruleOf(deep)).toBe('too-complex')
    expect(ruleOf(`rm -rf /; ${deep}`, { disable: ['too-complex'] })).toBe('destroy-root')
  })

  it.each([
    ['many variables and many pipes', `${assignments(4000)}\n${'true | true\n'.repeat(4000)}`],
    ['doubling text in a loop', 'x=$(printf %0100d 1); while :; do x=$x$x; done; '.repeat(200)],
    ['files that grow', `echo x > f\n${'cat f f > g; cat g g > f\n'.repeat(2000)}`],
    ['evaluated comments', `c="#${'c'.repeat(60_000)}"\n${'eval "$c"\n'.repeat(5000)}`],
    ['many functions', Array.from({ length: 3000 }, (_, i) => `f${i}() { f${i + 1}; }`).join('\n')],
    ['code full of quotes', `python3 -c '${'run("'.repeat(20_000)}'`],
    ['code full of brackets', `python3 -c '${'run(["a" '.repeat(5000)}'`],
    ['a schedule of spaces', `echo '${'* '.repeat(30_000)}' | crontab -`],
    ['brackets in a pattern', `rm -rf /${'[a'.repeat(20_000)}`],
    ['long removal', `x=${'ab'.repeat(30_000)}; ${'y=${x##*[c]};'.repeat(300)}`],
  ])('built to exhaust the reader is answered in time: %s', (_, script) => {
    const started = performance.now()
    checkCommand(script)
    expect(performance.now() - started).toBeLessThan(4000)
  })
})

function assignments(count: number): string {
  return Array.from({ length: count }, (_, i) => `v${i}=${i}`).join('\n')
}
