import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { linkSignals } from '../../../src/http/signal.ts'

const listeners = (controller: AbortController) => getEventListeners(controller.signal, 'abort').length

it('aborts with the reason of whichever source aborts first, and lets go of the others', () => {
  const [one, two] = [new AbortController(), new AbortController()]
  const link = linkSignals(one.signal, two.signal)
  expect([listeners(one), listeners(two)]).toEqual([1, 1])
  two.abort('left')
  expect([link.signal.aborted, link.signal.reason]).toEqual([true, 'left'])
  expect([listeners(one), listeners(two)]).toEqual([0, 0])
})

it('is aborted from the beginning when a source is, and holds on to nothing', () => {
  const [one, two] = [new AbortController(), new AbortController()]
  two.abort('gone')
  const link = linkSignals(one.signal, two.signal)
  expect(link.signal.reason).toBe('gone')
  expect(listeners(one)).toBe(0)
})

it('lets go of its sources when it is released, without aborting', () => {
  const one = new AbortController()
  const link = linkSignals(one.signal)
  link.release()
  one.abort()
  expect([link.signal.aborted, listeners(one)]).toEqual([false, 0])
})
