import { execFileSync } from 'node:child_process'

/** The runner of a machine needs it; where there is none, its tests are skipped. */
export const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()
