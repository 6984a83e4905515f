import { type Action, DOWNLOADED } from './actions.ts'
import { isAccountFile, isDisk, isVitalFile, protectedBy, resolvePath, UNKNOWN } from './paths.ts'
import { baseName } from './wrappers.ts'

export interface Refusal {
  rule: string
  reason: string
}

/** Names of the built-in rules; `cluster.policy.disable` takes them. */
export const BUILTIN_RULES = [
  'destroy-root',
  'destroy-system-directory',
  'destroy-home',
  'destroy-system-file',
  'write-device',
  'format-device',
  'recursive-permissions',
  'fork-bomb',
  'download-to-root-shell',
  'nul-byte',
  'too-complex',
] as const

/** One row: which programs, with which arguments, do what to which of their operands. */
interface Row {
  readonly programs: string | RegExp
  readonly does: Effect
  /** Only with an argument like this one. */
  readonly when?: RegExp
  /** Not with an argument like this one. */
  readonly unless?: RegExp
  /** Which operands are meant; all unless told otherwise. */
  readonly to?: 'last' | 'sources'
}

type Effect = 'delete' | 'unlink' | 'move' | 'change' | 'write' | 'overwrite' | 'format' | 'destroy-volume'

const TABLE: readonly Row[] = [
  { programs: 'rm grm srm', does: 'delete', when: /^-\w*[rR]|^--r/ },
  { programs: 'rm grm srm unlink', does: 'unlink' },
  { programs: 'rimraf trash trash-put', does: 'delete' },
  { programs: 'tar gtar bsdtar', does: 'delete', when: /^--remove-f/ },
  { programs: 'rsync', does: 'delete', when: /^--del/, to: 'last' },
  { programs: 'mv gmv', does: 'move', to: 'sources' },
  { programs: 'chmod chown chgrp setfacl', does: 'change', when: /^-\w*R|^--rec/ },
  { programs: 'dd gdd dcfldd tee sponge truncate fallocate', does: 'write' },
  { programs: 'tee', does: 'overwrite', unless: /^-\w*a|^--append/ },
  { programs: 'cp gcp install mv ln rsync dd_rescue qemu-img ddrescue', does: 'write', to: 'last' },
  { programs: 'sed gsed perl', does: 'write', when: /^-\w*i|^--in-place/ },
  {
    programs: 'shred scrub blkdiscard cfdisk mke2fs mkdosfs pvcreate pvremove vgcreate vgextend',
    does: 'format',
  },
  { programs: /^mk(?:swap|\w*fs)(?:[._]|$)|^newfs/, does: 'format' },
  { programs: 'wipefs', does: 'format', when: /^-\w*a|^--all/, unless: /^-\w*n|^--no-act/ },
  { programs: 'sgdisk', does: 'format', when: /^-(?!-)\w*[zZond]|^--(?:zap|clear|new|delete)/ },
  { programs: 'fdisk gdisk', does: 'format', unless: /^-(?!-)\w*[lsVh]|^--/ },
  { programs: 'sfdisk', does: 'format', unless: /^-(?!-)\w*[lFdJsgTVvhn]|^--(?!force|append|delete|wipe)/ },
  { programs: 'parted', does: 'format', when: /^(?:mklabel|mktable|mkpart|rm|resizepart)$/ },
  { programs: 'cryptsetup', does: 'format', when: /^(?:luksFormat|erase|luksErase|reencrypt)$/ },
  { programs: 'hdparm', does: 'format', when: /^--(?:security-erase|trim-sector|write-sector)/ },
  { programs: 'nvme', does: 'format', when: /^(?:format|sanitize|write-zeroes|delete-ns)$/ },
  { programs: 'badblocks', does: 'format', when: /^-\w*w/ },
  { programs: 'mdadm', does: 'format', when: /^-\w*C|^--create|^--zero-superblock/ },
  { programs: 'zpool', does: 'format', when: /^(?:create|labelclear)$/ },
  { programs: 'zpool zfs', does: 'destroy-volume', when: /^destroy$/, unless: /^-\w*n/ },
  {
    programs: 'lvremove vgremove',
    does: 'destroy-volume',
    when: /^-\w*[fy]|^--(?:force|yes)/,
    unless: /^-\w*n|^--test/,
  },
  { programs: 'diskutil', does: 'format', when: /^(?:erase|zero|secureErase|partition|reformat)/i },
]

/** The first built-in rule that refuses an action. */
export const judge = (action: Action): Refusal | undefined => {
  if (action.kind === 'write') return judgeWrite(action.path, action.cwd, action.append)
  if (action.kind === 'fork-bomb')
    return { rule: 'fork-bomb', reason: `"${action.name}" starts copies of itself without end` }
  if (action.kind === 'script')
    return action.root && action.text.includes(DOWNLOADED)
      ? { rule: 'download-to-root-shell', reason: 'it runs what a server sends as root, unseen' }
      : undefined
  return judgeCommand(action.argv, action.cwd)
}

const judgeCommand = (argv: readonly string[], cwd: string): Refusal | undefined => {
  const program = baseName(argv[0] ?? '')
  const args = argv.slice(1)
  for (const row of TABLE) {
    if (!names(row.programs, program)) continue
    if (row.when && !args.some(arg => row.when!.test(arg))) continue
    if (row.unless && args.some(arg => row.unless!.test(arg))) continue
    for (const target of targets(args, row.to)) {
      const refusal = refusalOf(row.does, program, target, cwd)
      if (refusal) return refusal
    }
  }
  return undefined
}

const names = (programs: string | RegExp, program: string): boolean =>
  typeof programs === 'string' ? programs.split(' ').includes(program) : programs.test(program)

const targets = (args: readonly string[], to: Row['to']): readonly string[] => {
  const end = args.indexOf('--')
  const operands = args.filter((arg, index) => !arg.startsWith('-') || (end >= 0 && index > end))
  // `dd of=FILE`
  const plain = operands.map(arg => arg.replace(/^of=/, '')).filter(arg => !/^\w+=/.test(arg))
  if (to === 'last') return plain.slice(-1)
  if (to === 'sources')
    return args.some(arg => /^-(?!-)\w*t$|^--target-d/.test(arg)) ? plain : plain.slice(0, -1)
  return plain
}

const LOST = {
  root: { rule: 'destroy-root', what: 'the root of the file system' },
  system: { rule: 'destroy-system-directory', what: 'a directory the system needs' },
  home: { rule: 'destroy-home', what: 'the home of a user' },
}

const refusalOf = (does: Effect, program: string, target: string, cwd: string): Refusal | undefined => {
  const lost = protectedBy(target, cwd)
  switch (does) {
    case 'delete':
    case 'move':
      return (
        lost && { rule: LOST[lost].rule, reason: `${program} would ${does} ${LOST[lost].what} (${target})` }
      )
    case 'unlink':
      if (!isVitalFile(target, cwd)) return undefined
      return {
        rule: 'destroy-system-file',
        reason: `${program} would delete ${target}, which the system needs`,
      }
    case 'change':
      if (lost === undefined || lost === 'home') return undefined
      return {
        rule: 'recursive-permissions',
        reason: `${program} -R would change every file below ${target}`,
      }
    case 'format':
      if (!isDisk(target, cwd) && !/^r?disk\d/.test(target)) return undefined
      return { rule: 'format-device', reason: `${program} would destroy what is on ${target}` }
    case 'destroy-volume':
      // A snapshot (`pool/data@monday`) is no loss.
      if (target === 'destroy' || /[@#]/.test(target)) return undefined
      return { rule: 'format-device', reason: `${program} would destroy ${target} and what is on it` }
    default:
      return judgeWrite(target, cwd, does === 'write')
  }
}

const judgeWrite = (path: string, cwd: string, append: boolean): Refusal | undefined => {
  if (isDisk(path, cwd)) return { rule: 'write-device', reason: `writing to ${path} overwrites a disk` }
  if (resolvePath(path, cwd) === '/proc/sysrq-trigger')
    return { rule: 'write-device', reason: `writing to ${path} stops the machine at once` }
  return !append && isAccountFile(path, cwd)
    ? { rule: 'destroy-system-file', reason: `it would overwrite ${path}, without which nobody logs in` }
    : undefined
}

/** Text as people read it in a refusal. */
export const readable = (text: string): string => {
  const plain = text.replaceAll('/home/~', '~').replaceAll(DOWNLOADED, '<download>').replaceAll(UNKNOWN, '…')
  return plain.length > 120 ? `${plain.slice(0, 117)}…` : plain
}
