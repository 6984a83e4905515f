import { expect, it } from 'vitest'
import { createLoadHistory } from '../../../src/http/load-history.ts'

const status = (nodes: Record<string, object>) => ({ local_node: 'a', nodes })

it('remembers the load of each node, one value in five seconds and at most sixty', () => {
  let now = 0
  const add = createLoadHistory(() => now)
  expect(add(status({ a: { cpu_percent: 10 }, b: { status: 'unreachable' } }))).toEqual(
    status({ a: { cpu_percent: 10, cpu_history: [10] }, b: { status: 'unreachable', cpu_history: [] } }),
  )
  now = 1000
  expect(add(status({ a: { cpu_percent: 20 } }))).toEqual(
    status({ a: { cpu_percent: 20, cpu_history: [10] } }),
  )
  for (let step = 1; step <= 80; step++) {
    now = step * 5000 + 1000
    add(status({ a: { cpu_percent: step } }))
  }
  const last = add(status({ a: { cpu_percent: 99 } })) as ReturnType<typeof status>
  expect(last.nodes.a).toMatchObject({ cpu_history: Array.from({ length: 60 }, (_, index) => index + 21) })
})

it('forgets nodes that were removed', () => {
  let now = 0
  const add = createLoadHistory(() => now)
  add(status({ a: { cpu_percent: 10 } }))
  now = 5000
  add(status({}))
  now = 10_000
  expect(add(status({ a: { cpu_percent: 30 } }))).toEqual(
    status({ a: { cpu_percent: 30, cpu_history: [30] } }),
  )
})
