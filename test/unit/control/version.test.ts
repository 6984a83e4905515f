import { expect, it } from 'vitest'
import { isOlder } from '../../../src/control/ensure-daemon.ts'

it.each([
  ['0.1.0', '0.2.0', true],
  ['0.10.0', '0.9.9', false],
  ['1.0.0', '1.0.0', false],
  ['1.0.0-beta.1', '1.0.0', true],
  ['1.0.0', '1.0.0-beta.1', false],
  ['2.0.0', '1.9.9', false],
  ['nonsense', '1.0.0', false],
  ['1.0.0', '', false],
])('a daemon of version %s seen from %s: older is %s', (theirs, ours, older) => {
  expect(isOlder(theirs, ours)).toBe(older)
})
