import { isAccountFile, isDisk, isVitalFile, protectedBy, resolvePath, UNKNOWN } from './protected-paths.ts'
import { type Action, DOWNLOADED } from './script-actions.ts'
import { baseName } from './wrappers.ts'

export interface Refusal {
  rule: string
  reason: string
}

/** Names of the built-in rules, as `cluster.policy.disable` lists them. */
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

/** One row of the table of effects: these programs, called with these arguments, have this effect on these operands. */
interface Row {
  readonly programs: string | RegExp
  readonly does: Effect
  /** The row applies only with a matching argument. */
  readonly when?: RegExp
  /** The row does not apply with a matching argument. */
  readonly unless?: RegExp
  /** The affected operands; all by default. */
  readonly to?: 'last' | 'sources'
}

type BuiltinRule = (typeof BUILTIN_RULES)[number]
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

/** Why a built-in rule refuses an action; undefined when none does. */
export const refuseAction = (action: Action): Refusal | undefined => {
  switch (action.kind) {
    case 'write':
      return refuseWrite(action.path, action.cwd, action.append)
    case 'fork-bomb':
      return refusal('fork-bomb', `"${action.name}" starts copies of itself without end`)
    case 'script':
      if (!action.root || !action.text.includes(DOWNLOADED)) return undefined
      return refusal('download-to-root-shell', 'it runs a download as root')
    case 'run':
      return refuseCommand(action.argv, action.cwd)
  }
}

const refusal = (rule: BuiltinRule, reason: string): Refusal => ({ rule, reason })

const refuseCommand = (argv: readonly string[], cwd: string): Refusal | undefined => {
  const program = baseName(argv[0] ?? '')
  const args = argv.slice(1)
  for (const row of TABLE) {
    if (!matches(row.programs, program)) continue
    if (row.when && !args.some(arg => row.when!.test(arg))) continue
    if (row.unless && args.some(arg => row.unless!.test(arg))) continue
    for (const target of targets(args, row.to)) {
      const found = refuseEffect(row.does, program, target, cwd)
      if (found) return found
    }
  }
  return undefined
}

const matches = (programs: string | RegExp, program: string): boolean =>
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

const LOSS = {
  root: ['destroy-root', 'the root of the file system'],
  system: ['destroy-system-directory', 'a directory the system needs'],
  home: ['destroy-home', 'the home of a user'],
} as const

const refuseEffect = (does: Effect, program: string, target: string, cwd: string): Refusal | undefined => {
  const lost = protectedBy(target, cwd)
  switch (does) {
    case 'delete':
    case 'move':
      return lost && refusal(LOSS[lost][0], `${program} would ${does} ${LOSS[lost][1]} (${target})`)
    case 'unlink':
      if (!isVitalFile(target, cwd)) return undefined
      return refusal('destroy-system-file', `${program} would delete ${target}, which the system needs`)
    case 'change':
      if (lost === undefined || lost === 'home') return undefined
      return refusal('recursive-permissions', `${program} -R would change every file below ${target}`)
    case 'format':
      if (!isDisk(target, cwd) && !/^r?disk\d/.test(target)) return undefined
      return refusal('format-device', `${program} would destroy the data on ${target}`)
    case 'destroy-volume':
      // Deleting a snapshot (`pool/data@monday`) keeps the volume.
      if (target === 'destroy' || /[@#]/.test(target)) return undefined
      return refusal('format-device', `${program} would destroy ${target} and its data`)
    default:
      return refuseWrite(target, cwd, does === 'write')
  }
}

const refuseWrite = (path: string, cwd: string, append: boolean): Refusal | undefined => {
  if (isDisk(path, cwd)) return refusal('write-device', `writing to ${path} overwrites a disk`)
  if (resolvePath(path, cwd) === '/proc/sysrq-trigger')
    return refusal('write-device', `writing to ${path} stops the machine at once`)
  if (append || !isAccountFile(path, cwd)) return undefined
  return refusal('destroy-system-file', `it would overwrite ${path}, which every login needs`)
}

/** Replaces the placeholder characters in a refusal and shortens it. */
export const readable = (text: string): string => {
  const plain = text.replaceAll('/home/~', '~').replaceAll(DOWNLOADED, '<download>').replaceAll(UNKNOWN, '…')
  return plain.length > 120 ? `${plain.slice(0, 117)}…` : plain
}
