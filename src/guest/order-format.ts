import { AppError } from '../jobs/errors.ts'

/** The order for one job. */
export interface GuestSpec {
  readonly jobId: string
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  readonly timeoutSeconds: number
  readonly graceSeconds: number
  readonly heartbeatSeconds: number
  /** Tars to download and unpack: the target of each, and whether it is gzipped. */
  readonly inputs: readonly Unpacking[]
  /** Whether the daemon collects files of the workspace at the end. */
  readonly wantsFiles: boolean
  /** Whether to keep the workspace of the previous job. */
  readonly continues: boolean
  /** Whether the machine, and what runs in it, outlives the job. */
  readonly outlivesJob: boolean
}

export type Unpacking = 'workspace' | 'workspace.gz' | 'root'

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Lines that a POSIX shell can read without a parser: a key and values, plain or in base64. The last line is `end`, so
 * that the runner recognises an incomplete transfer.
 */
export const encodeSpec = (spec: GuestSpec): string => {
  const lines = [
    'deputy 1',
    `job ${spec.jobId}`,
    `timeout ${Math.ceil(spec.timeoutSeconds)}`,
    `grace ${Math.ceil(spec.graceSeconds)}`,
    `heartbeat ${Math.ceil(spec.heartbeatSeconds)}`,
    `continues ${Number(spec.continues)}`,
    `keep ${Number(spec.outlivesJob)}`,
    `files ${Number(spec.wantsFiles)}`,
    ...spec.inputs.map(into => `input ${into}`),
    ...Object.entries({ ...spec.env, ...spec.secrets }).map(
      ([name, value]) => `env ${checkName(name)} ${encode(value)}`,
    ),
    ...spec.argv.map(argument => `arg ${encode(argument)}`),
    'end',
  ]
  return `${lines.join('\n')}\n`
}

/** Text that every shell reads unchanged. */
const PLAIN = /^[\x20-\x7e\t\n]{0,4096}$/

/**
 * Plain text is not encoded; its further lines begin with a plus. Decoding base64 would start a program in the guest
 * before the command.
 */
const encode = (text: string): string => {
  if (text.includes('\0')) throw new AppError('invalid', 'A value for the guest holds a NUL byte.')
  return PLAIN.test(text) ? `=${text.replaceAll('\n', '\n+')}` : Buffer.from(text).toString('base64')
}

const checkName = (name: string): string => {
  if (NAME.test(name)) return name
  throw new AppError('invalid', `"${name}" is not a name for an environment variable.`)
}
