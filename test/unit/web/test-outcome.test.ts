import { expect, it } from 'vitest'
import { testOutcome } from '../../../web/compare/test-outcome.ts'

it.each([
  [
    '\u001b[2m      Tests \u001b[22m \u001b[1m\u001b[31m1 failed\u001b[39m | \u001b[32m12 passed\u001b[39m (13)',
    '12 passed, 1 failed',
  ],
  ['Tests:       2 failed, 1 skipped, 30 passed, 33 total\nSnapshots: 0 total', '30 passed, 2 failed'],
  ['...\n===== 1 failed, 12 passed, 2 warnings in 0.12s =====', '12 passed, 1 failed'],
  ['3 passed in 1.5s', '3 passed, 0 failed'],
  ['== 1 passed, 2 errors in 3.00s ==', '1 passed, 2 failed'],
  ['test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured', '12 passed, 1 failed'],
  ['# tests 5\n# suites 0\n# pass 4\n# fail 1\n# cancelled 0', '4 passed, 1 failed'],
  ['ℹ pass 4\nℹ fail 0', '4 passed, 0 failed'],
  ['  12 passing (30ms)\n  1 failing\n\n  1) a', '12 passed, 1 failed'],
  ['test result: ok. 1 passed; 0 failed\nlater:\ntest result: ok. 7 passed; 0 failed', '7 passed, 0 failed'],
])('finds the end of the tests in %j', (output, outcome) => {
  expect(testOutcome(output)).toBe(outcome)
})

it.each(['', 'Tests are written', 'we passed', 'in 3s', 'built 12 files in 0.3 s'])(
  'finds none in %j',
  output => {
    expect(testOutcome(output)).toBeUndefined()
  },
)
