/**
 * For suites that need something a computer may lack. Returns whether to skip; where everything is required
 * (DEPUTY_REQUIRE_E2E=1, as in CI) what is missing is an error instead.
 */
export const requireOrSkip = (missing: string | undefined): boolean => {
  if (missing === undefined) return false
  if (process.env.DEPUTY_REQUIRE_E2E === '1') throw new Error(`this suite must run here, but ${missing}`)
  process.stderr.write(`skipped: ${missing}\n`)
  return true
}
