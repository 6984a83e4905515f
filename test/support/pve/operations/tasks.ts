import { check } from '../acl.ts'
import { badParams } from '../errors.ts'
import { type Context, NODE, type Operation } from '../operation.ts'
import type { Task } from '../tasks.ts'

const UPID = { type: 'string' } as const

export const taskOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/tasks',
    name: 'node_tasks',
    description: 'Lists the tasks of a node.',
    params: {
      node: NODE,
      limit: { type: 'integer', optional: true, minimum: 0 },
      start: { type: 'integer', optional: true, minimum: 0 },
      since: { type: 'integer', optional: true },
      until: { type: 'integer', optional: true },
      vmid: { type: 'integer', optional: true },
      typefilter: { type: 'string', optional: true },
      userfilter: { type: 'string', optional: true },
      errors: { type: 'boolean', optional: true },
      statusfilter: { type: 'string', optional: true },
      source: { type: 'string', optional: true, enum: ['archive', 'active', 'all'] },
    },
    permission: { user: 'all' },
    onNode: true,
    returns: 'array',
    run: context => {
      const { params } = context
      const source = params.source ?? 'archive'
      return [...context.state.tasks.values()]
        .filter(task => task.node === params.node && sees(context, task))
        .filter(task => source === 'all' || (source === 'active') === (task.exitstatus === undefined))
        .filter(task => params.vmid === undefined || task.id === String(params.vmid))
        .filter(task => params.typefilter === undefined || task.type === params.typefilter)
        .filter(task => params.since === undefined || task.starttime >= Number(params.since))
        .reverse()
        .slice(Number(params.start ?? 0), Number(params.start ?? 0) + Number(params.limit ?? 50))
        .map(task => ({
          ...summary(task),
          ...(task.exitstatus === undefined ? {} : { status: task.exitstatus, endtime: task.endtime }),
        }))
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}/status',
    name: 'read_task_status',
    description: 'Tells the state of a task.',
    params: { node: NODE, upid: UPID },
    permission: { user: 'all' },
    onNode: true,
    returns: 'object',
    run: context => {
      const task = taskOf(context)
      const ended = task.exitstatus !== undefined
      return {
        ...summary(task),
        status: ended ? 'stopped' : 'running',
        ...(ended ? { exitstatus: task.exitstatus } : {}),
      }
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/tasks/{upid}/log',
    name: 'read_task_log',
    description: 'Tells the log of a task, line by line.',
    params: {
      node: NODE,
      upid: UPID,
      start: { type: 'integer', optional: true, minimum: 0 },
      limit: { type: 'integer', optional: true, minimum: 0 },
      download: { type: 'boolean', optional: true },
    },
    permission: { user: 'all' },
    onNode: true,
    returns: 'array',
    run: context => {
      const { log } = taskOf(context)
      const start = Number(context.params.start ?? 0)
      const limit = Number(context.params.limit ?? 50)
      return log
        .slice(start, limit === 0 ? undefined : start + limit)
        .map((t, index) => ({ n: start + index + 1, t }))
    },
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/tasks/{upid}',
    name: 'stop_task',
    description: 'Stops a task.',
    params: { node: NODE, upid: UPID },
    permission: { user: 'all' },
    onNode: true,
    returns: 'null',
    run: async context => {
      const task = taskOf(context, 'Sys.Modify')
      task.abort()
      await task.done
      return null
    },
  },
]

/** A token sees its own tasks only, not those of its user nor of the user's other tokens. */
const owns = ({ auth }: Context, task: Task): boolean =>
  task.owner === (auth.token === undefined ? auth.user : `${auth.user}!${auth.token}`)

const sees = (context: Context, task: Task): boolean => {
  if (owns(context, task)) return true
  try {
    check(context.state, context.auth, `/nodes/${task.node}`, ['Sys.Audit'])
    return true
  } catch {
    return false
  }
}

const taskOf = (context: Context, right = 'Sys.Audit'): Task => {
  const task = context.state.tasks.get(String(context.params.upid))
  if (!task) throw badParams({ upid: 'no such task' })
  if (!owns(context, task)) check(context.state, context.auth, `/nodes/${task.node}`, [right])
  return task
}

const summary = (task: Task) => {
  const [, , pid = '0', pstart = '0'] = task.upid.split(':')
  return {
    upid: task.upid,
    node: task.node,
    pid: Number.parseInt(pid, 16),
    pstart: Number.parseInt(pstart, 16),
    starttime: task.starttime,
    type: task.type,
    id: task.id,
    user: task.owner,
  }
}
