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

/** Complaints come last: the end of what was printed is enough, and costs nothing while it is printed. */
const REMEMBERED_CHUNKS = 8

export const createSymptoms = (): Symptoms => {
  const recent: Buffer[] = []
  return {
    look: data => {
      recent.push(data)
      if (recent.length > REMEMBERED_CHUNKS) recent.shift()
    },
    saw: symptom => {
      const text = Buffer.concat(recent)
      return PHRASES[symptom].some(phrase => text.includes(phrase))
    },
  }
}
