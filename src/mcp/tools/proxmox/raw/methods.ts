import { z } from 'zod'

export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const

/** Lower case works, too. */
export const methodSchema = z.preprocess(
  given => (typeof given === 'string' ? given.toUpperCase() : given),
  z.enum(METHODS),
)
