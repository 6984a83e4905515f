import { dangerOf, isDevice, resolvePath } from './targets.ts'
import { baseName, DOWNLOAD } from './text.ts'

export interface Refusal {
  rule: string
  reason: string
}

export interface Situation {
  argv: readonly string[]
  cwds: readonly string[]
  root: boolean
}

/** The built-in rules about one resolved simple command. */
export const judge = (situation: Situation): Refusal | undefined => {
  const name = baseName(situation.argv[0] ?? '')
  const args = situation.argv.slice(1)
  const check =
    CHECKS.get(name) ??
    (/^mk(?:fs|swap|e2fs|(?:dos|nt|vfat|exfat)fs)|^newfs/.test(name) ? formats : undefined)
  return check?.({ name, args, cwds: situation.cwds })
}

/** The rules about where output goes, for redirections. */
export const judgeWrite = (path: string, cwds: readonly string[], append = false): Refusal | undefined => {
  if (isDevice(path, cwds)) return { rule: 'write-device', reason: `writing to ${path} overwrites a disk` }
  const resolved = cwds.map(cwd => resolvePath(path, cwd))
  if (resolved.includes('/proc/sysrq-trigger'))
    return { rule: 'write-device', reason: `writing to ${path} stops the machine at once` }
  return !append && resolved.some(file => ACCOUNTS.test(file))
    ? { rule: 'destroy-system-file', reason: `it would overwrite ${path}, without which nobody logs in` }
    : undefined
}

const ACCOUNTS = /^\/etc\/(?:passwd|shadow|group|gshadow|sudoers)$/

/** The rule about text from the network that a root shell would run. */
export const judgeShellInput = (text: string, root: boolean): Refusal | undefined =>
  root && text.includes(DOWNLOAD)
    ? { rule: 'download-to-root-shell', reason: 'it runs what a server sends as root, unseen' }
    : undefined

interface Call {
  name: string
  args: readonly string[]
  cwds: readonly string[]
}

type Check = (call: Call) => Refusal | undefined

const operands = (args: readonly string[]): string[] => {
  const end = args.indexOf('--')
  const before = end < 0 ? args : args.slice(0, end)
  const after = end < 0 ? [] : args.slice(end + 1)
  return [...before.filter(arg => !arg.startsWith('-') || arg === '-'), ...after]
}

/** Options before `--`; GNU tools take any unambiguous beginning of a long one. */
const hasOption = (args: readonly string[], letters: string, long: string): boolean => {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some(arg =>
    arg.startsWith('--') ? arg.length > 3 && long.startsWith(arg.split('=')[0]!) : isLetters(arg, letters),
  )
}

const isLetters = (arg: string, letters: string): boolean =>
  arg.startsWith('-') && [...letters].some(letter => arg.slice(1).includes(letter))

const destroys = (target: string, call: Call, verb: string): Refusal | undefined => {
  const danger = dangerOf(target, call.cwds)
  if (!danger) return undefined
  const what = {
    root: 'the root of the file system',
    system: 'a directory the system needs',
    home: 'the home of a user',
  }
  const rule = { root: 'destroy-root', system: 'destroy-system-directory', home: 'destroy-home' }
  return { rule: rule[danger], reason: `${call.name} would ${verb} ${what[danger]} (${target})` }
}

const first = <T>(items: readonly T[], find: (item: T) => Refusal | undefined): Refusal | undefined => {
  for (const item of items) {
    const refusal = find(item)
    if (refusal) return refusal
  }
  return undefined
}

const removes: Check = call =>
  hasOption(call.args, 'rR', '--recursive')
    ? first(operands(call.args), target => destroys(target, call, 'delete'))
    : undefined

/** tar --remove-files deletes what it has packed. */
const packs: Check = call =>
  call.args.some(arg => /^--remove-f/.test(arg))
    ? first(operands(call.args), target => destroys(target, call, 'delete'))
    : undefined

const moves: Check = call =>
  first(operands(call.args).slice(0, -1), target => destroys(target, call, 'move away'))

const permissions: Check = call => {
  if (!hasOption(call.args, 'R', '--recursive')) return undefined
  return first(operands(call.args), target => {
    const danger = dangerOf(target, call.cwds)
    return danger === 'root' || danger === 'system'
      ? { rule: 'recursive-permissions', reason: `${call.name} -R would change every file below ${target}` }
      : undefined
  })
}

const mirrors: Check = call =>
  call.args.some(arg => arg.startsWith('--del'))
    ? first(operands(call.args).slice(-1), target => destroys(target, call, 'empty'))
    : undefined

const formats: Check = call =>
  first(operands(call.args), target =>
    isDevice(target, call.cwds)
      ? { rule: 'format-device', reason: `${call.name} would destroy what is on ${target}` }
      : undefined,
  )

const formatsWith =
  (pattern: RegExp): Check =>
  call =>
    call.args.some(arg => pattern.test(arg)) ? formats(call) : undefined

const formatsUnless =
  (pattern: RegExp): Check =>
  call =>
    call.args.some(arg => pattern.test(arg)) ? undefined : formats(call)

/** Volumes and pools, which have no path of a device; a snapshot (`pool/data@monday`) is no loss. */
const destroysVolumes =
  (verb?: RegExp): Check =>
  call => {
    const words = operands(call.args)
    if (verb && !verb.test(words[0] ?? '')) return undefined
    const targets = verb ? words.slice(1) : words
    const target = targets.find(word => !/[@#]/.test(word))
    return target === undefined || call.args.some(arg => /^-(?!-)\w*n|^--test$/.test(arg))
      ? undefined
      : { rule: 'format-device', reason: `${call.name} would destroy ${target} and what is on it` }
  }

/** `sed -i` and `perl -i` write back what they read. */
const editsInPlace: Check = call => {
  const inPlace = call.args.some(arg => /^-(?!-)\w*i|^--in-place/.test(arg))
  return inPlace ? writes(call) : undefined
}

const writes: Check = call => first(operands(call.args), target => judgeWrite(target, call.cwds))

const writesLast: Check = call =>
  first(operands(call.args).slice(-1), target => judgeWrite(target, call.cwds))

const copiesBlocks: Check = call =>
  first(
    call.args.filter(arg => arg.startsWith('of=')),
    arg => judgeWrite(arg.slice(3), call.cwds),
  )

const FORK = /\bfork\b/
const ENDLESS_LOOP =
  /\bwhile\b[\s(]*(?:1|true|!0|(?:os\.)?fork)\b|\bfork\b[\s()]*\bwhile\b|\bloop\b|\bfor\s*\(\s*;\s*;\s*\)|\buntil\b[\s(]*(?:0|false)\b/i
const LEAVES = /\b(?:break|last|return|_?exit|wait\w*|sleep)\b/

/** Endless loops around fork() in the languages people paste one-liners of. */
const forks: Check = call =>
  call.args.some(arg => FORK.test(arg) && ENDLESS_LOOP.test(arg) && !LEAVES.test(arg))
    ? { rule: 'fork-bomb', reason: `${call.name} would fork without end` }
    : undefined

const CHECKS = new Map(
  Object.entries<Check>({
    rm: removes,
    grm: removes,
    srm: removes,
    mv: moves,
    gmv: moves,
    chmod: permissions,
    chown: permissions,
    chgrp: permissions,
    chattr: permissions,
    setfacl: permissions,
    rsync: call => mirrors(call) ?? writesLast(call),
    dd: copiesBlocks,
    gdd: copiesBlocks,
    dcfldd: copiesBlocks,
    tar: packs,
    gtar: packs,
    bsdtar: packs,
    sed: editsInPlace,
    gsed: editsInPlace,
    cp: writesLast,
    install: writesLast,
    pv: call => (hasOption(call.args, 'o', '--output') ? writes(call) : undefined),
    tee: writes,
    sponge: writes,
    truncate: writes,
    fallocate: writes,
    wipefs: call =>
      hasOption(call.args, 'n', '--no-act') ? undefined : formatsWith(/^-\w*a|^--all|^-\w*o|^--offset/)(call),
    shred: formats,
    scrub: formats,
    blkdiscard: formats,
    badblocks: formatsWith(/^-\w*[wn]/),
    hdparm: formatsWith(/^--(?:security-erase|trim-sector|write-sector|make-bad-sector|yes-i-know)/),
    nvme: formatsWith(/^(?:format|sanitize|write-zeroes|write|delete-ns)$/),
    cryptsetup: formatsWith(/^(?:luksFormat|erase|luksErase|reencrypt)$/),
    sgdisk: formatsWith(/^-(?!-)\w*[zZond]|^--(?:zap|clear|new|delete)/),
    gdisk: formatsUnless(/^-l$/),
    fdisk: formatsUnless(/^-(?!-)\w*[lsVh]|^--(?:list|getsz|version|help)/),
    cfdisk: formats,
    sfdisk: formatsUnless(
      /^-(?!-)\w*[lFdJsgTVvhn]|^--(?:list|dump|json|show|verify|version|help|no-act|backup-p)/,
    ),
    parted: formatsWith(/^(?:mklabel|mktable|mkpart|rm|resizepart)$/),
    pvcreate: formats,
    pvremove: formats,
    mdadm: formatsWith(/^-\w*C|^--create|^--zero-superblock/),
    zpool: call => formatsWith(/^(?:create|labelclear)$/)(call) ?? destroysVolumes(/^destroy$/)(call),
    zfs: destroysVolumes(/^destroy$/),
    // Without -f or -y they ask first.
    lvremove: call => (hasOption(call.args, 'fy', '--force') ? destroysVolumes()(call) : undefined),
    vgremove: call => (hasOption(call.args, 'fy', '--force') ? destroysVolumes()(call) : undefined),
    ddrescue: call => first(operands(call.args).slice(1, 2), target => judgeWrite(target, call.cwds)),
    'qemu-img': call => (call.args.includes('convert') ? writesLast(call) : undefined),
    diskutil: formatsDisks,
    perl: call => forks(call) ?? editsInPlace(call),
    python: forks,
    python2: forks,
    python3: forks,
    ruby: forks,
    php: forks,
    node: forks,
    lua: forks,
  }),
)

/** macOS names a disk with or without /dev/. */
function formatsDisks(call: Call): Refusal | undefined {
  if (!call.args.some(arg => /^(?:erase|zero|secureErase|partition|reformat)/i.test(arg))) return undefined
  const target = call.args.find(arg => /^(?:\/dev\/)?r?disk\d/.test(arg))
  return target === undefined
    ? undefined
    : { rule: 'format-device', reason: `diskutil would destroy what is on ${target}` }
}
