/** Ends of test runs as the common runners print them. The groups are the numbers of passed and failed tests. */
const SUMMARIES: readonly { readonly pattern: RegExp; count(found: RegExpExecArray): Counts }[] = [
  // Vitest, Jest: `Tests  1 failed | 12 passed (13)`, `Tests: 1 failed, 12 passed, 13 total`
  {
    pattern: /^\s*Tests:?\s+(?=.*\b\d+ (?:passed|failed))(.*)$/m,
    count: ([, line = '']) => ({
      passed: numberBefore(line, 'passed'),
      failed: numberBefore(line, 'failed'),
    }),
  },
  // pytest: `1 failed, 12 passed in 0.12s`
  {
    pattern: /^=*\s*(.*\b\d+ (?:passed|failed|error).*) in [\d.]+ ?s/m,
    count: ([, line = '']) => ({
      passed: numberBefore(line, 'passed'),
      failed: numberBefore(line, 'failed') + numberBefore(line, 'errors?'),
    }),
  },
  // cargo: `test result: FAILED. 12 passed; 1 failed; 0 ignored`
  {
    pattern: /^test result: \w+\. (.*)$/m,
    count: ([, line = '']) => ({
      passed: numberBefore(line, 'passed'),
      failed: numberBefore(line, 'failed'),
    }),
  },
  // node --test, TAP: `# pass 12` and `# fail 1`
  {
    pattern: /^(?:#|ℹ) pass (\d+)\s*\n(?:#|ℹ) fail (\d+)/m,
    count: ([, passed, failed]) => ({ passed: Number(passed), failed: Number(failed) }),
  },
  // Mocha: `12 passing (30ms)` and `1 failing`
  {
    pattern: /^\s*(\d+) passing\b[^\n]*(?:\n\s*\d+ pending)?(?:\n\s*(\d+) failing)?/m,
    count: ([, passed, failed = 0]) => ({ passed: Number(passed), failed: Number(failed) }),
  },
]

interface Counts {
  readonly passed: number
  readonly failed: number
}

/** The last summary of tests in an output, such as `12 passed, 1 failed`; undefined when there is none. */
export const testOutcome = (output: string): string | undefined => {
  const plain = output.replace(ESCAPES, '')
  const found = SUMMARIES.flatMap(({ pattern, count }) => {
    const last = [...plain.matchAll(new RegExp(pattern, 'gm'))].at(-1)
    return last === undefined ? [] : [{ at: last.index, ...count(last as RegExpExecArray) }]
  })
  const end = found.sort((one, other) => one.at - other.at).at(-1)
  if (end === undefined) return undefined
  return `${end.passed} passed, ${end.failed} failed`
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with the escape character.
const ESCAPES = /\x1b\[[\d;]*m/g

const numberBefore = (line: string, word: string): number =>
  Number(new RegExp(`(\\d+) ${word}\\b`).exec(line)?.[1] ?? 0)
