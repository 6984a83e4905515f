import { AppError, amendError } from '../../../jobs/errors.ts'
import { valueAt } from '../../../jobs/records.ts'
import { parseUpid } from '../../../proxmox/upid.ts'
import { bindAll, type Operation, operationPath } from './policy/api-operation.ts'
import type { Caller } from './policy/gate.ts'
import { withholdSecrets } from './policy/withhold-secrets.ts'
import type { Args, OperationName, RowContext, TaskRecord } from './row-context.ts'
import type { ProxmoxService } from './service.ts'
import type { Method } from './table/define-row.ts'

export interface CallSession extends RowContext {
  /** Sends an operation through the gate, and removes secrets from the response. */
  send(operation: Operation, options?: { bytes?: boolean }): Promise<unknown>
  /** Files with the secrets of this call. */
  readonly secretFiles: string[]
}

/** The context of one tool call: requests on behalf of the caller, and the files with secrets. */
export const openCallSession = (service: ProxmoxService, caller: Caller): CallSession => {
  const secretFiles: string[] = []
  const { signal } = caller
  const saveSecret = async (label: string, content: string) => {
    const file = await service.saveSecret(label, content)
    secretFiles.push(file)
    return file
  }

  const send = async (operation: Operation, options: { bytes?: boolean } = {}) => {
    const request = () =>
      service.api.request(operation.method, operationPath(operation), operation.params, {
        signal,
        ...options,
      })
    const answer = await service.gate.pass(operation, caller, request)
    const { data, secret } = options.bytes
      ? { data: answer, secret: undefined }
      : withholdSecrets(operation, answer)
    if (secret) await saveSecret(`${operation.segments.at(-1)} ${secret.fields.join(' ')}`, secret.content)
    return data
  }

  return {
    send,
    secretFiles,
    saveSecret,
    signal,
    api: service.api,
    lxc: service.lxc,
    filesDir: service.filesDir,
    uploadDirs: service.settings.uploadDirs,
    ownDirs: service.ownDirs,
    call: (operation, values, options) => send(named(operation, values), options),
    perform: (operation, values, work) => service.gate.pass(named(operation, values), caller, work),
    awaitTask: (upid, seconds) => {
      const { type, node } = parseUpid(upid)
      if (seconds > 0) caller.progress?.(`Waiting for the task ${type} on ${node}.`)
      return awaitTask(service, upid, seconds, signal)
    },
  }
}

const named = (operation: OperationName, values: Args): Operation => {
  const space = operation.indexOf(' ')
  return bindAll(operation.slice(0, space) as Method, operation.slice(space + 1), values)
}

/** Waits for a task to end. Throws if it failed, with the last lines of its log. */
const awaitTask = async (
  { api }: ProxmoxService,
  upid: string,
  seconds: number,
  signal: AbortSignal,
): Promise<TaskRecord> => {
  if (seconds <= 0) return running(upid)
  try {
    const { exitStatus, warnings, log } = await api.waitTask(upid, {
      deadline: Date.now() + seconds * 1000,
      signal,
    })
    return {
      upid,
      state: warnings ? 'warnings' : 'ok',
      exitstatus: exitStatus,
      ...(log.length > 0 && { log }),
      ...highAvailability(upid),
    }
  } catch (error) {
    if (isStillRunning(error)) return running(upid)
    throw error instanceof AppError ? withLog(error) : error
  }
}

const running = (upid: string): TaskRecord => ({
  upid,
  state: 'running',
  next: `Not finished. Wait with proxmox_node_task wait, or proxmox_api_call {"path":"nodes/${parseUpid(upid).node}/tasks/${upid}/status","wait":45}.`,
})

/** A task that itself failed with a timeout throws the same code, but has an exit status. */
const isStillRunning = (error: unknown): boolean =>
  error instanceof AppError &&
  error.code === 'timeout' &&
  detail(error, 'upid') !== undefined &&
  detail(error, 'exitStatus') === undefined

const detail = (error: AppError, key: string): unknown => valueAt(error.details, [key])

const withLog = (error: AppError): AppError => {
  const log = detail(error, 'log')
  if (!Array.isArray(log) || log.length === 0) return error
  return amendError(error, {
    message: `${error.message}\nLast lines of the task:\n${log.slice(-8).join('\n')}`,
  })
}

/** HA tasks only queue a request for the HA manager. */
const highAvailability = (upid: string): Partial<TaskRecord> =>
  /^ha(start|stop|migrate|relocate|shutdown)$/.test(parseUpid(upid).type)
    ? { next: 'The HA manager carries this out now; check the status of the guest.' }
    : {}
