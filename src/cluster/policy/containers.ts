import type { Builtin } from './commands.ts'
import { dangerOf, isDevice } from './targets.ts'
import { UNKNOWN } from './text.ts'

/** What a container does to itself is its own affair; what it does to a directory of the machine is not. */
export const container: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.indexOf('run')
  if (at < 0 || at > 3) return UNKNOWN
  const mounts: Mount[] = []
  let workdir: string | undefined
  let reaches = false
  let index = at + 1
  for (; index < args.length; index++) {
    const arg = args[index]!
    if (!arg.startsWith('-')) break
    const [name, value] = optionOf(arg, args[index + 1])
    if (name === '-w' || name === '--workdir') workdir = value
    reaches ||= name === '--privileged' || (name === '--device' && isDevice(value.split(':')[0]!, scope.cwds))
    if (VOLUME.test(name)) mounts.push(...mountOf(value))
    if (!arg.includes('=') && (VALUED.test(name) || VOLUME.test(name)) && name === arg) index++
  }
  const dangerous = mounts.filter(
    ({ source }) => dangerOf(source, scope.cwds) !== undefined || isDevice(source, scope.cwds),
  )
  const words = args.slice(index + 1)
  if (words.length === 0) return UNKNOWN
  // The disks of a machine are its disks to a container that is let at them, and so is the machine behind nsenter.
  if (reaches && words.some(word => /\/dev\/|nsenter/.test(word))) interpreter.run(words, scope.fork(), stdin)
  if (dangerous.length === 0) return UNKNOWN
  const below = scope.fork()
  if (workdir !== undefined) below.cwds = [dangerous.reduce(outside, workdir)]
  const seen = words.map(word => dangerous.reduce(outside, word))
  return interpreter.run(seen, below, stdin)
}

interface Mount {
  source: string
  target: string
}

const VOLUME = /^(?:-v|--volume|--mount)$/
const VALUED =
  /^(?:-[ehlmpuw]|--(?:name|env|env-file|network|net|user|workdir|entrypoint|publish|label|memory|cpus|platform|hostname|add-host|cap-add|cap-drop|device|gpus|ipc|pid|pull|restart|runtime|security-opt|shm-size|tmpfs|ulimit|userns|uts))$/

const optionOf = (arg: string, next: string | undefined): [string, string] => {
  const equals = arg.indexOf('=')
  if (arg.startsWith('--') && equals > 0) return [arg.slice(0, equals), arg.slice(equals + 1)]
  return /^-v./.test(arg) ? ['-v', arg.slice(2).replace(/^=/, '')] : [arg, next ?? '']
}

const mountOf = (value: string): Mount[] => {
  if (!value.includes('=')) {
    const [source, target] = value.split(':')
    return source && target ? [{ source, target }] : []
  }
  const field = (pattern: RegExp): string | undefined => pattern.exec(value)?.[1]
  const source = field(/(?:^|,)(?:source|src)=([^,]*)/)
  const target = field(/(?:^|,)(?:target|dst|destination)=([^,]*)/)
  return source && target ? [{ source, target }] : []
}

/** A word of the container's command with its mounted paths as they are outside. */
const outside = (word: string, { source, target }: Mount): string =>
  word
    .split(/([\s"'=;&|()]+)/)
    .map(piece =>
      piece === target || piece.startsWith(`${target}/`)
        ? `${source === '/' ? '' : source}${piece.slice(target.length)}` || '/'
        : piece,
    )
    .join('')
