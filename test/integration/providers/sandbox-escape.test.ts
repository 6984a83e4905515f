import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHarness, type Harness } from '../../support/providers.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf } from './provider-contract.ts'

const python = existsSync('/usr/bin/python3')

for (const { name, subject, skip } of SANDBOXES.slice(0, 2))
  describe.skipIf(skip !== undefined || !python)(`escape attempts from a sandbox (${name})`, () => {
    let harness: Harness
    let outside: string
    beforeAll(async () => {
      harness = await createHarness(subject)
      outside = mkdtempSync(join(tmpdir(), 'deputy-outside-'))
      writeFileSync(join(outside, 'secret'), 'outside', { mode: 0o644 })
    })
    afterAll(async () => {
      await harness.dispose()
      rmSync(outside, { recursive: true, force: true })
    })

    const attempt = async (task: string, command = {}) => {
      const { outcome, sink } = await harness.run({ task }, command)
      return { ...exitOf(outcome), text: sink.text() }
    }
    /** Each call as `name: result`; libc's errno tells why. */
    const syscalls = async (calls: string) => {
      const { text } = await attempt('x', { argv: ['/usr/bin/python3', '-c', SYSCALLS + calls] })
      return Object.fromEntries(
        text
          .trim()
          .split('\n')
          .map(line => line.split(': ') as [string, string]),
      )
    }

    it('sees no files of users or other jobs', async () => {
      const home = userInfo().homedir
      const places = [
        outside,
        home,
        harness.stateDir,
        '/root',
        '/home',
        '/var',
        '/srv',
        '/mnt',
        '/boot',
        '/sys',
        '/run/user',
        '/opt',
      ]
      const { text } = await attempt(
        `for p in ${places.join(' ')}; do [ -e "$p" ] && echo "$p: $(ls -A "$p" | head -c 200)"; done; true`,
      )
      expect(text).toBe('/home: job\n')
      const secrets = await attempt(
        'cat /etc/shadow /etc/sudoers /etc/ssh/ssh_host_* /etc/machine-id 2>/dev/null; find / -xdev -name "*.sock" 2>/dev/null',
      )
      expect(secrets.text).toBe('')
    })

    it("gets no variable of the daemon's environment", async () => {
      process.env.DEPUTY_TEST_LEAK = 'leaked-value'
      const { text } = await attempt(
        'env; cat /proc/*/environ /proc/*/task/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n"',
      )
      delete process.env.DEPUTY_TEST_LEAK
      expect(text).not.toContain('leaked-value')
      expect(text).not.toContain(harness.stateDir)
      const names = text.split('\n').flatMap(line => /^([A-Z_a-z]+)=/.exec(line)?.[1] ?? [])
      const known = [
        'PATH',
        'HOME',
        'USER',
        'LOGNAME',
        'SHELL',
        'LANG',
        'TMPDIR',
        'PWD',
        'OLDPWD',
        'SHLVL',
        '_',
        'DEPUTY_WORKSPACE',
      ]
      expect(names.filter(name => !known.includes(name))).toEqual([])
    })

    it('sees and signals no process but its own', async () => {
      const { text } = await attempt(
        `ls /proc | grep -c '^[0-9]*$'; for pid in 1 ${process.pid}; do kill -0 $pid 2>/dev/null && [ $pid != 1 ] && echo "can signal $pid"; done; ls -d /proc/${process.pid} 2>/dev/null; ls /proc/1/root /proc/1/cwd/ 2>/dev/null | head -3; true`,
      )
      expect(Number(text.split('\n')[0])).toBeLessThan(10)
      expect(text).not.toContain('can signal')
      expect(text).not.toContain(`/proc/${process.pid}`)
    })

    it('has no capabilities, no new privileges, a filter and an id that is nobody here', async () => {
      const { text } = await attempt(
        'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; cat /proc/self/uid_map; id -u; find /usr/bin -perm -4000 | head -1 | xargs -r -n1 sh -c \'"$0" -c id 2>/dev/null | grep uid=0\'',
      )
      for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
        expect(text).toMatch(new RegExp(`Cap${set}:\\s+0{16}`))
      expect(text).toMatch(/NoNewPrivs:\s+1/)
      expect(text).toMatch(/Seccomp:\s+2/)
      expect(text).toMatch(/^\s+1000\s+\d+\s+1$/m)
      expect(text).not.toContain('uid=0')
    })

    it('cannot touch the kernel through /proc and /sys', async () => {
      const { text } = await attempt(
        [
          'for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches /proc/sysrq-trigger /proc/sys/fs/binfmt_misc/register /proc/sys/kernel/hostname /proc/sys/user/max_user_namespaces; do',
          '  [ -e $f ] || continue; v=$(cat $f 2>/dev/null | head -1); (printf "%s" "$v" >$f) 2>/dev/null && echo "WROTE $f"; done',
          'for f in /proc/kcore /proc/kmsg /proc/kallsyms /dev/mem /dev/kmsg /dev/fuse /dev/kvm /dev/sda /dev/vda; do (head -c 1 $f >/dev/null) 2>/dev/null && [ $f != /proc/kallsyms ] && echo "READ $f"; done',
          'grep -v "^0000000000000000" /proc/kallsyms 2>/dev/null | head -1; true',
        ].join('\n'),
      )
      expect(text).toBe('')
    })

    it('is denied the system calls that namespaces do not cover', async () => {
      const results = await syscalls(`
call('ptrace', 101, 117, 0, 0, 0, 0)
call('process_vm_readv', 310, 270, os.getppid(), 0, 0, 0, 0, 0)
call('keyctl', 250, 219, 0, -3, 1)
call('add_key', 248, 217, 0, 0, 0, 0, -3)
call('request_key', 249, 218, 0, 0, 0, 0)
call('bpf', 321, 280, 0, 0, 0)
call('perf_event_open', 298, 241, 0, 0, -1, -1, 0)
call('userfaultfd', 323, 282, 0)
call('io_uring_setup', 425, 425, 1, 0)
call('open_by_handle_at', 304, 265, 0, 0, 0)
call('mount', 165, 40, 0, 0, 0, 0, 0)
call('chroot', 161, 51, b'/')
call('pivot_root', 155, 41, b'/', b'/')
call('setns', 308, 268, 0, 0)
call('unshare_user', 272, 97, 0x10000000)
call('unshare_net', 272, 97, 0x40000000)
call('clone_user', 56, 220, 0x10000000 | 17, 0, 0, 0, 0)
call('clone3', 435, 435, 0, 0)
call('personality', 135, 92, 0x0040000)
call('swapon', 167, 224, b'/x', 0)
call('init_module', 175, 105, 0, 0, b'')
call('kexec_load', 246, 104, 0, 0, 0, 0)
call('settimeofday', 164, 170, 0, 0)
call('syslog', 103, 116, 3, 0, 0)
call('reboot', 169, 142, 0, 0, 0, 0)
call('allowed_getpid', 39, 172)
`)
      const { allowed_getpid: allowed, clone3, ...denied } = results
      expect(allowed).toBe('ok')
      expect(clone3).toBe('ENOSYS')
      for (const [call, result] of Object.entries(denied)) expect(result, call).toBe('EPERM')
    })

    it('is denied unusual socket families', async () => {
      const results = await syscalls(`
for family, number in dict(unix=1, inet=2, inet6=10, netlink=16, packet=17, bluetooth=31, alg=38, vsock=40, xdp=44, can=29, tipc=30, rds=21).items():
    call(family, 41, 198, number, 3 if number == 16 else 1, 0)
call('netfilter', 41, 198, 16, 3, 12)
call('audit', 41, 198, 16, 3, 9)
`)
      const { unix, inet, inet6, netlink, ...others } = results
      expect([unix, inet, inet6, netlink]).toEqual(['ok', 'ok', 'ok', 'ok'])
      for (const [family, result] of Object.entries(others)) expect(result, family).toBe('EAFNOSUPPORT')
    })

    it('cannot inject input into a terminal', async () => {
      const results = await syscalls(`
import pty, fcntl
main, other = pty.openpty()
for label, request in (('TIOCSTI', 0x5412), ('TIOCLINUX', 0x541c), ('TIOCSTI_high', 0x5412 | (1 << 32))):
    call(label, 16, 29, other, request, b'x')
call('TIOCGWINSZ', 16, 29, other, 0x5413, ctypes.create_string_buffer(8))
`)
      expect(results).toEqual({
        TIOCSTI: 'EPERM',
        TIOCLINUX: 'EPERM',
        TIOCSTI_high: 'EPERM',
        TIOCGWINSZ: 'ok',
      })
    })

    it('cannot create namespaces', async () => {
      const { text } = await attempt(
        'unshare -U true && echo made; unshare -Urm true && echo made; bwrap --ro-bind / / true && echo made; true',
      )
      expect(text).not.toContain('made')
    })

    it('reaches no abstract socket of this computer', async () => {
      const server = createServer(socket => socket.end('reached'))
      const path = `\0deputy-escape-${process.pid}`
      await new Promise<void>(resolve => server.listen(path, resolve))
      const { text } = await attempt('x', {
        argv: [
          '/usr/bin/python3',
          '-c',
          `import socket; s=socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0deputy-escape-${process.pid}'); print('reached')\nexcept OSError as e: print(e.strerror)`,
        ],
      })
      server.close()
      expect(text).toBe('Connection refused\n')
    })

    it('cannot use the descriptors of the runner, nor forge messages about other jobs', async () => {
      const { text, code, artifacts } = await attempt(
        [
          'for pid in /proc/[0-9]*; do for fd in $pid/fd/*; do case $(readlink $fd) in socket:*) (echo "exit 0" >$fd) 2>/dev/null && echo "WROTE $fd";; esac; done; done',
          'for pid in /proc/[0-9]*; do cat $pid/mem 2>/dev/null | head -c 1; done',
          'exit 7',
        ].join('\n'),
      )
      expect(text).not.toContain('WROTE')
      expect(code).toBe(7)
      expect(artifacts).toEqual([])
    })

    it('cannot make the host follow its links or unpack its names', async () => {
      const { outcome } = await harness.run({
        task: [
          `mkdir d; ln -s ${outside} d/out; ln -s ${outside}/secret s.txt; ln -s /proc/self/environ e.txt`,
          'mkdir swap; echo inside >swap/secret; mv swap gone; ln -s /etc swap',
          'mkdir -p "deep/..  /.hidden"; echo x >"deep/..  /.hidden/y.txt"; echo x >"..dots.txt"',
        ].join('\n'),
        artifacts: ['**'],
      })
      const { artifacts, skippedArtifacts } = exitOf(outcome)
      expect(artifacts.map(file => file.path).sort()).toEqual([
        '..dots.txt',
        'deep/..  /.hidden/y.txt',
        'gone/secret',
      ])
      expect(skippedArtifacts.map(file => file.path).sort()).toEqual(['d/out', 'e.txt', 's.txt', 'swap'])
    })

    it('cannot leave the workspace through the files of a manifest', async () => {
      const blob = await hostileTar(harness, outside)
      const { outcome, sink } = await harness.run({
        task: 'ls -A /work; cat /work/up/secret 2>/dev/null',
        workspace: { blob },
      })
      expect(['exit', 'not-started']).toContain(outcome.kind)
      expect(sink.text()).not.toContain('outside')
      expect(existsSync(join(outside, 'written'))).toBe(false)
    })
  })

/** A workspace tar with names that climb, links that lead out, and a device. */
const hostileTar = async (harness: Harness, outside: string): Promise<string> => {
  const { pack } = await import('tar-stream')
  const tar = pack()
  tar.entry({ name: '../../../../../../etc/written' }, 'x')
  tar.entry({ name: `${outside}/written` }, 'x')
  tar.entry({ name: 'up', type: 'symlink', linkname: outside })
  tar.entry({ name: 'up/written' }, 'x')
  tar.entry({ name: 'device', type: 'character-device', devmajor: 1, devminor: 1 })
  tar.entry({ name: 'fine.txt' }, 'fine')
  tar.finalize()
  return (await harness.blobs.put(tar as AsyncIterable<Uint8Array>, 1e6, 'upload')).sha256
}

const SYSCALLS = `
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == 'aarch64'
def call(name, x64, arm64, *args):
    ctypes.set_errno(0)
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(arm64 if arm else x64), *args)
    print(name + ': ' + ('ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]), flush=True)
`
