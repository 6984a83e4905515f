import { LIMITS } from '../jobs/limits.ts'

/** The largest manifest, and half as much again for how JSON and base64 write it. */
export const MAX_MESSAGE_BYTES = LIMITS.manifestBytes * 1.5
