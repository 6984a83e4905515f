/** What a program prints when a limit stops it. Only asked where the kernel does not count for us. */
const PHRASES = {
  disk: ['No space left on device', 'ENOSPC'],
  memory: ['MemoryError', 'Cannot allocate memory', 'out of memory', 'bad_alloc'],
  processes: ['Resource temporarily unavailable', 'Cannot fork'],
} as const

export type Symptom = keyof typeof PHRASES

export interface Symptoms {
  look(data: Buffer): void
  saw(symptom: Symptom): boolean
}

/** Complaints come last: the end of what was printed is enough. Copied, so that nothing large is held for it. */
const REMEMBERED_BYTES = 32 * 1024

export const createSymptoms = (): Symptoms => {
  let tail: Buffer | undefined
  let used = 0
  return {
    look: data => {
      tail ??= Buffer.allocUnsafeSlow(REMEMBERED_BYTES)
      const kept = Math.min(used, Math.max(0, REMEMBERED_BYTES - data.length))
      tail.copyWithin(0, used - kept, used)
      used = kept + data.copy(tail, kept, Math.max(0, data.length - REMEMBERED_BYTES))
    },
    saw: symptom => {
      const text = tail?.subarray(0, used)
      return PHRASES[symptom].some(phrase => text?.includes(phrase))
    },
  }
}
