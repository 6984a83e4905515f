import { type Call, type Check, first, hasOption, operands, transfer } from './call.ts'
import { cleans, mirrors, moves, packs, removes, removesAll, unlinks } from './deletion.ts'
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
  const call = { name, args, cwds: situation.cwds }
  return checkOf(name)?.(call) ?? outputs(call)
}

/** Whether there are rules about a program. */
export const isJudged = (name: string): boolean => checkOf(name) !== undefined

const checkOf = (name: string): Check | undefined =>
  CHECKS.get(name) ?? (/^mk(?:swap|\w*fs)(?:[._]|$)|^newfs/.test(name) ? formats : undefined)

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

const permissions: Check = call => {
  if (!hasOption(call.args, 'R', '--recursive')) return undefined
  return first(operands(call.args), target => {
    const danger = dangerOf(target, call.cwds)
    return danger === 'root' || danger === 'system'
      ? { rule: 'recursive-permissions', reason: `${call.name} -R would change every file below ${target}` }
      : undefined
  })
}

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

/** A copy into a directory is under the name it had. */
const copies: Check = call => {
  const { sources, target } = transfer(call.args)
  if (target === undefined) return undefined
  const intoDevices = call.cwds.some(cwd => resolvePath(target, cwd) === '/dev')
  return (
    judgeWrite(target, call.cwds) ??
    (intoDevices ? first(sources, source => overDevice(`/dev/${baseName(source)}`, call)) : undefined)
  )
}

const overDevice = (target: string, call: Call): Refusal | undefined =>
  isDevice(target, call.cwds) ? judgeWrite(target, call.cwds) : undefined

/** A file moved or linked over a device's name takes its place. */
const replaces: Check = call => {
  const { target } = transfer(call.args)
  return target === undefined ? undefined : overDevice(target, call)
}

const OUTPUT = /^(?:-[oO]|-out|--out(?:put|file)?(?:-document)?)$/

/** Most programs call the file they write by one of a few names. */
const outputs: Check = call => {
  if (!call.args.some(arg => arg.includes('/dev/'))) return undefined
  return first(
    call.args.flatMap((arg, index) => {
      const equals = arg.indexOf('=')
      if (equals > 0) return OUTPUT.test(arg.slice(0, equals)) ? [arg.slice(equals + 1)] : []
      return OUTPUT.test(call.args[index - 1] ?? '') ? [arg] : []
    }),
    target => overDevice(target, call),
  )
}

/** `tar cf /dev/sda` */
const archives: Check = call => {
  const letters = call.args[0] ?? ''
  const at = /^-?[a-zA-Z]*[cru][a-zA-Z]*f$/.test(letters) ? 1 : 0
  return packs(call) ?? (at > 0 ? overDevice(call.args[at] ?? '', call) : undefined)
}

const copiesBlocks: Check = call =>
  first(
    call.args.filter(arg => arg.startsWith('of=')),
    arg => judgeWrite(arg.slice(3), call.cwds),
  )

const FORK = /\b(?:pcntl_)?fork\b/
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
    unlink: unlinks,
    rimraf: removesAll,
    trash: removesAll,
    'trash-put': removesAll,
    'del-cli': removesAll,
    git: cleans,
    mv: call => moves(call) ?? replaces(call),
    gmv: call => moves(call) ?? replaces(call),
    ln: replaces,
    chmod: permissions,
    chown: permissions,
    chgrp: permissions,
    chattr: permissions,
    setfacl: permissions,
    rsync: call => mirrors(call) ?? writesLast(call),
    dd: copiesBlocks,
    gdd: copiesBlocks,
    dcfldd: copiesBlocks,
    dc3dd: copiesBlocks,
    dd_rescue: writesLast,
    e2image: writesLast,
    tar: archives,
    gtar: archives,
    bsdtar: archives,
    sed: editsInPlace,
    gsed: editsInPlace,
    cp: copies,
    gcp: copies,
    install: copies,
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
    bcachefs: formatsWith(/^format$/),
    'make-bcache': formats,
    sg_format: formats,
    sg_sanitize: formats,
    btrfs: formatsWith(/^(?:add|replace)$/),
    vgcreate: formats,
    vgextend: formats,
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
