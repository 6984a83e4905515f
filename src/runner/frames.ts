import { z } from 'zod'
import { errorBody, runExit } from './run-result.ts'
import { shimStart } from './shim-start.ts'

/**
 * The runner protocol: what the daemon asks the runner inside a machine, and what the runner answers. A frame is one
 * line of shell words, `kind key=value …`, so that a runner written in POSIX sh needs no parser; `bytes=N` announces N
 * raw bytes after the line, `bytes=rest` all that follow on the channel. Each frame names its run or workspace, so
 * one channel can serve several machines. The keys and kinds that only shims know carry JSON where that is simpler.
 *
 * A peer ignores keys and kinds that it does not know. A change that an older peer would misread raises `VERSION`.
 */
export const VERSION = 1
/** The oldest version this side still understands. */
export const OLDEST = 1

/** Ids become file names. */
const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/)
const text = z.string().regex(/^[^\0]*$/, 'must not contain NUL')
const count = z.codec(z.string().regex(/^\d{1,15}$/), z.int().min(0), { decode: Number, encode: String })
const flag = z.codec(z.enum(['0', '1']), z.boolean(), {
  decode: value => value === '1',
  encode: value => (value ? '1' : '0'),
})
/** Process ids, separated by spaces. */
const pids = z.codec(z.string().regex(/^[\d ]*$/), z.array(z.int()), {
  decode: value => value.split(' ').filter(Boolean).map(Number),
  encode: value => value.join(' '),
})

/** A value encoded as JSON; only for frames that no shell script parses. */
const json = <T extends z.ZodType>(schema: T) =>
  z.codec(z.string(), schema, {
    decode: (text, context): z.input<T> => {
      try {
        return JSON.parse(text)
      } catch {
        context.issues.push({ code: 'custom', message: 'must be JSON', input: text })
        return z.NEVER
      }
    },
    encode: value => JSON.stringify(value),
  })

/** A list without entries has no words. */
const variables = z.array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*=[^\0]*$/)).default([])

/** Of a terminal: `COLUMNSxROWS`. */
const size = z.codec(z.string().regex(/^\d{1,5}x\d{1,5}$/), z.object({ columns: z.int(), rows: z.int() }), {
  decode: value => {
    const [columns = 0, rows = 0] = value.split('x').map(Number)
    return { columns, rows }
  },
  encode: ({ columns, rows }) => `${columns}x${rows}`,
})

const hello = z.object({ kind: z.literal('hello'), version: count, oldest: count, mark: id })

export const requestSchema = z.discriminatedUnion('kind', [
  /** First. `owner` separates the installations that use one machine. */
  hello.extend({ owner: id }),
  /** Starts the command unless this run exists already, then follows it. */
  z.object({
    kind: z.literal('start'),
    run: id,
    from: count,
    /** The directory to run in; the runner creates it. */
    workspace: id,
    timeoutSeconds: count,
    graceTenths: count,
    /** Bytes of each stream that the runner keeps from the beginning and from the end. */
    keepHead: count,
    keepTail: count,
    /** Base64. Returned by `context`; the daemon seals it. */
    context: z.string().regex(/^[A-Za-z0-9+/=]*$/),
    env: variables,
    argv: z.array(text).min(1),
    shim: json(shimStart).exactOptional(),
  }),
  /** Follows a run from an offset. A run that the runner does not know never starts afterwards. */
  z.object({ kind: z.literal('follow'), run: id, from: count }),
  /** Ends the processes of a run: TERM, grace, KILL. A run that has not arrived yet never starts. */
  z.object({
    kind: z.literal('stop'),
    run: id,
    graceTenths: count,
    /** For the result. */
    why: z.enum(['cancel', 'timeout', 'stale']).exactOptional(),
  }),
  z.object({ kind: z.literal('context'), run: id }),
  /** Makes sure that a run which has not arrived yet never starts. */
  z.object({ kind: z.literal('bar'), run: id }),
  /** Ends every run of a workspace and deletes the workspace. */
  z.object({ kind: z.literal('release'), workspace: id }),
  z.object({ kind: z.literal('workspaces') }),
  /** Lists the files of a workspace. */
  z.object({ kind: z.literal('files'), workspace: id }),
  /** A tar of some of them. This answer and that of `files` are the last ones on their channel. */
  z.object({ kind: z.literal('read'), workspace: id, argv: z.array(text) }),
  /**
   * To a shim: runs a program in a machine beside its job. The connection belongs to this session from then on, and the
   * program ends with it. With `size` (columns, rows), it runs in a terminal.
   */
  z.object({
    kind: z.literal('open'),
    workspace: id,
    session: id,
    size: size.exactOptional(),
    env: variables,
    argv: z.array(text).min(1),
  }),
  z.object({ kind: z.literal('input'), session: id, bytes: count }),
  /** The input has ended. */
  z.object({ kind: z.literal('eof'), session: id }),
  z.object({ kind: z.literal('resize'), session: id, size }),
  /** To a shim: exit when no machine is held. */
  z.object({ kind: z.literal('retire') }),
])

const ofRun = z.object({ run: id })

/** A shim and the machines that it holds. */
const shimState = z.object({
  id,
  pid: z.int(),
  /** The first user id of its machines when the daemon is root; there are as many as machines. */
  uid: z.int().nullable(),
  /** How many machines it can hold. Shims of version 0.1 hold one. */
  capacity: z.int().default(1),
  /** Identifies its program; empty in version 0.1. */
  build: z.string().default(''),
  /** It takes no new machine. */
  retiring: z.boolean().default(false),
  /** `run` is the active run; null when there is none. */
  machines: z.array(z.object({ workspace: id, run: id.nullable() })),
})

export const answerSchema = z.discriminatedUnion('kind', [
  /** `boot` identifies the boot of the system, where it has such an id. */
  hello.extend({ boot: text, shim: json(shimState).exactOptional() }),
  /** `at`: when, in milliseconds since 1970. */
  ofRun.extend({ kind: z.literal('started'), fresh: flag, at: count.exactOptional() }),
  ofRun.extend({
    kind: z.literal('output'),
    stream: z.enum(['stdout', 'stderr']),
    offset: count,
    bytes: count,
    /** When it was printed, in milliseconds since 1970. */
    at: count.exactOptional(),
  }),
  /** From a runner that redacts and formats the output itself. */
  ofRun.extend({ kind: z.literal('progress'), text }),
  /** `count` bytes from `offset` on were printed and not kept. */
  ofRun.extend({ kind: z.literal('dropped'), offset: count, count }),
  ofRun.extend({ kind: z.literal('heartbeat') }),
  /**
   * Times in seconds since 1970, 0 where the follower has seen them itself. `result`: from a runner that has collected
   * the files already.
   */
  ofRun.extend({
    kind: z.literal('exit'),
    code: count,
    how: z.enum(['exit', 'timeout', 'stop']),
    startedAt: count,
    endedAt: count,
    result: json(runExit).exactOptional(),
  }),
  /** The log of a run has grown; the shim writes it to the directory of the run. */
  ofRun.extend({ kind: z.literal('logged') }),
  /** It did not start and never will. `fault`: because something is wrong on the machine. */
  ofRun.extend({
    kind: z.literal('refused'),
    fault: flag,
    reason: text,
    error: json(errorBody).exactOptional(),
  }),
  /** It may have run; how it ended cannot be known. */
  ofRun.extend({ kind: z.literal('lost'), reason: text, error: json(errorBody).exactOptional() }),
  /** Another follower has taken over. */
  ofRun.extend({ kind: z.literal('superseded') }),
  /** `left`: processes that survived. */
  ofRun.extend({ kind: z.literal('stopped'), left: pids }),
  ofRun.extend({ kind: z.literal('context'), context: text }),
  z.object({ kind: z.literal('released'), workspace: id, left: pids }),
  z.object({ kind: z.literal('workspace'), workspace: id, createdAt: count }),
  /** With `bytes=rest`, as `tar`; see `file-list.ts`. */
  z.object({ kind: z.literal('files'), workspace: id }),
  z.object({ kind: z.literal('tar'), workspace: id }),
  /** The answers to `open`; a session that cannot begin is `refused`. Its output follows as `output`. */
  z.object({ kind: z.literal('opened'), session: id }),
  /** Without a code the program was killed with its machine. */
  z.object({ kind: z.literal('ended'), session: id, code: count.exactOptional() }),
  /** The shim takes no new machine and exits when it holds none. */
  z.object({ kind: z.literal('leaving') }),
  z.object({ kind: z.literal('failed'), reason: text }),
  /** Every request is answered. */
  z.object({ kind: z.literal('end') }),
])

export type ShimState = z.output<typeof shimState>
export type Request = z.output<typeof requestSchema>
export type Answer = z.output<typeof answerSchema>

/** Keys that may occur more than once. */
const LISTS = new Set(['env'])

type Fields = Record<string, string | string[]>

/** `argv` follows the word `--`, so that it needs no key. */
export const toWords = ({ kind, argv, ...fields }: Partial<Fields>): string[] => [
  String(kind),
  ...Object.entries(fields).flatMap(([key, value = []]) =>
    (Array.isArray(value) ? value : [value]).map(each => `${key}=${each}`),
  ),
  ...(Array.isArray(argv) ? ['--', ...argv] : []),
]

export const fromWords = ([kind = '', ...words]: readonly string[]): Fields => {
  const fields: Fields = { kind }
  for (const [index, word] of words.entries()) {
    if (word === '--') return { ...fields, argv: words.slice(index + 1) }
    const at = word.indexOf('=')
    const key = word.slice(0, Math.max(0, at))
    const value = word.slice(at + 1)
    if (key === '' || key === 'kind' || key === '__proto__') continue
    const known = fields[key]
    if (LISTS.has(key)) fields[key] = [...(Array.isArray(known) ? known : []), value]
    else fields[key] = value
  }
  return fields
}
