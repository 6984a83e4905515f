import type { Random } from './random.ts'

export interface Fault {
  readonly name: string
  readonly weight: number
  /** Resolves when everything it did has been undone. Tells what it hit. */
  strike(random: Random): Promise<string>
}
