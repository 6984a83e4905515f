import { appendFileSync } from 'node:fs'

/** What happened and what broke, with the time since the start. */
export interface Journal {
  note(text: string): void
  /** Reports a broken promise. The run goes on, so that one run shows all of them. */
  violation(text: string): void
  readonly violations: readonly string[]
}

export const createJournal = (file: string): Journal => {
  const began = performance.now()
  const violations: string[] = []
  const note = (text: string): void => {
    appendFileSync(file, `${((performance.now() - began) / 1000).toFixed(2).padStart(7)} s  ${text}\n`)
  }
  return {
    note,
    violation: text => {
      violations.push(text)
      note(`VIOLATION ${text}`)
    },
    violations,
  }
}
