import { availableParallelism, totalmem } from 'node:os'

/** Read once: every submit compares with them, and totalmem() reads a file. */
export const PROCESSORS = availableParallelism()
export const MEMORY_BYTES = totalmem()
