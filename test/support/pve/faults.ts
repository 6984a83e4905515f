export interface RequestFault {
  /** Which requests; a text matches a part of `METHOD /path`. */
  readonly match: string | RegExp
  /** How often; for ever when absent. */
  times?: number
  readonly delayMs?: number
  /** Answer this status instead of doing anything, with an optional reason phrase and body. */
  readonly status?: number
  readonly reason?: string
  readonly message?: string
  /** Break the connection before the call is done, or do it and break before the answer. */
  readonly drop?: 'before' | 'after'
  /** Do it, but answer 596 as a proxy that lost patience. */
  readonly loseAnswer?: boolean
}

interface TaskFault {
  readonly type: string
  readonly step?: string
  /** Only for this guest. */
  readonly id?: string
  times?: number
  /** The exit status. */
  readonly error?: string
  readonly slower?: number
}

/** The switchboard: what goes wrong, when, and how often. */
export interface Faults {
  addRequest(fault: RequestFault): void
  addTask(fault: TaskFault): void
  clear(): void
  forRequest(method: string, path: string): RequestFault | undefined
  taskFailure(type: string, step: string, id: string): string | undefined
  slowness(type: string, step: string): number
}

export const createFaults = (): Faults => {
  let requests: RequestFault[] = []
  let tasks: TaskFault[] = []

  const use = (fault: { times?: number }): void => {
    if (fault.times !== undefined) fault.times--
  }
  const live = (fault: { times?: number }): boolean => fault.times === undefined || fault.times > 0
  const applies = (fault: TaskFault, type: string, step: string): boolean =>
    live(fault) && fault.type === type && (fault.step === undefined || fault.step === step)

  return {
    addRequest: fault => void requests.push({ ...fault }),
    addTask: fault => void tasks.push({ ...fault }),
    clear: () => {
      requests = []
      tasks = []
    },
    forRequest: (method, path) => {
      const line = `${method} ${path}`
      const fault = requests.find(
        one => live(one) && (typeof one.match === 'string' ? line.includes(one.match) : one.match.test(line)),
      )
      if (fault) use(fault)
      return fault
    },
    taskFailure: (type, step, id) => {
      const fault = tasks.find(
        one => applies(one, type, step) && one.error !== undefined && (one.id ?? id) === id,
      )
      if (fault) use(fault)
      return fault?.error
    },
    slowness: (type, step) =>
      tasks.find(one => applies(one, type, step) && one.slower !== undefined)?.slower ?? 1,
  }
}
