import type { Reporter, TestModule } from 'vitest/node'
import { has } from './has.ts'

/** Programs that tests start, and the Debian packages that have them. */
export const PACKAGES: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  unshare: 'util-linux',
  ps: 'procps',
  git: 'git',
  curl: 'curl',
  ssh: 'openssh-client',
  sshd: 'openssh-server',
  ip: 'iproute2',
  iptables: 'iptables',
  nft: 'nftables',
  rsync: 'rsync',
  zsh: 'zsh',
  fish: 'fish',
  busybox: 'busybox',
  bsdtar: 'libarchive-tools',
  chromium: 'chromium',
  shellcheck: 'shellcheck',
  genisoimage: 'genisoimage',
  xorriso: 'xorriso',
  python3: 'python3',
  dockerd: 'docker.io',
  podman: 'podman',
  'docker-registry': 'docker-registry',
}

/** Says at the end of a run, in one line, how many tests were skipped and which packages would enable more of them. */
export default class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    let skipped = 0
    for (const { children } of modules) for (const _ of children.allTests('skipped')) skipped += 1
    const missing = Object.keys(PACKAGES).filter(program => !has(program, SBIN))
    process.stdout.write(`${skippedLine(skipped, missing)}\n`)
  }
}

/** Where Debian keeps sshd, iptables and nft, which is not on the PATH of an ordinary user. */
const SBIN = '/usr/local/sbin:/usr/sbin:/sbin'

export const skippedLine = (skipped: number, missing: readonly string[]): string => {
  if (skipped === 0) return 'No test was skipped.'
  const count = skipped === 1 ? '1 test was skipped' : `${skipped} tests were skipped`
  const packages = [...new Set(missing.map(program => PACKAGES[program] ?? program))]
  return packages.length === 0
    ? `${count}; every package is installed: they need root, or rights this computer does not give.`
    : `${count}; to enable more: apt-get install ${packages.join(' ')}`
}
