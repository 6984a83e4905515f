import { describe, expect, it } from 'vitest'
import { AppError, ERROR_TABLE, messageWithHint, toAppError } from '../../../src/jobs/errors.ts'
import { isId, newId } from '../../../src/jobs/ids.ts'
import { nearest } from '../../../src/jobs/nearest.ts'
import { formatSize, parseSize } from '../../../src/jobs/sizes.ts'
import { canMove, isTerminal, STATES, sourcesOf } from '../../../src/jobs/states.ts'

describe('ids', () => {
  it('are UUIDs of version 7, ordered by time, never twice', () => {
    const ids = Array.from({ length: 1000 }, (_, i) => newId(1_700_000_000_000 + i))
    expect(new Set(ids).size).toBe(1000)
    expect([...ids].sort()).toEqual(ids)
    expect(ids.every(isId)).toBe(true)
    expect(Number.parseInt(ids[0]!.replace('-', '').slice(0, 12), 16)).toBe(1_700_000_000_000)
    expect(isId('../../etc/passwd')).toBe(false)
  })
})

describe('states', () => {
  it('have no way out of a terminal one, and a way into each', () => {
    for (const state of STATES) {
      if (isTerminal(state)) for (const to of STATES) expect(canMove(state, to)).toBe(false)
      if (state !== 'pending') expect(sourcesOf(state).length).toBeGreaterThan(0)
    }
  })
})

describe('errors', () => {
  it.each([
    ['it is off', 'Switch it on.', 'it is off. Switch it on.'],
    ['It is off.', 'Switch it on.', 'It is off. Switch it on.'],
    ['it is off', undefined, 'it is off'],
  ])('%j and %j read as sentences in one line', (message, hint, line) => {
    expect(messageWithHint({ message, hint })).toBe(line)
  })

  it('cross the socket and come back the same', () => {
    const error = new AppError('queue_full', 'Full.', { hint: 'Wait.', details: { n: 1 } })
    const back = AppError.fromBody(JSON.parse(JSON.stringify(error.toBody())))
    expect(back.toBody()).toEqual(error.toBody())
    expect(back.httpStatus).toBe(429)
  })

  it('of a newer daemon with an unknown code are still errors', () => {
    const body = { code: 'brand_new', message: 'x', retryable: false }
    expect(AppError.fromBody(body as never).code).toBe('internal')
  })

  it('never blame the caller for a defect', () => {
    expect(ERROR_TABLE[toAppError(new TypeError('x is undefined')).code].http).toBe(500)
  })
})

describe('small helpers', () => {
  it('guess what was meant, and only when it is close', () => {
    expect(nearest('agent-type', ['agentType', 'task'])).toBe('agentType')
    expect(nearest('stauts', ['status', 'list'])).toBe('status')
    expect(nearest('xyzzy', ['status', 'list'])).toBeUndefined()
  })

  it('read and show sizes', () => {
    expect(parseSize('2G')).toBe(2 * 1024 ** 3)
    expect(formatSize(2 * 1024 ** 3)).toBe('2.0 GB')
    expect(formatSize(10)).toBe('10 B')
  })
})
