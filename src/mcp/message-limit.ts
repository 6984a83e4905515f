import { LIMITS } from '../jobs/limits.ts'

/** The largest manifest, plus half its size for the overhead of JSON and base64. */
export const MAX_MESSAGE_BYTES = LIMITS.manifestBytes * 1.5
