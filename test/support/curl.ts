import { has } from './has.ts'

/** The runner of a machine needs it. */
export const hasCurl = has('curl')
