import type { Random } from './random.ts'

export interface Fault {
  readonly name: string
  readonly weight: number
  /** What it hits: of two faults with the same target, the later one waits for the end of the other. */
  readonly target?: string
  /** Resolves when everything it did has been undone. Tells what it hit. */
  strike(random: Random): Promise<string>
}
