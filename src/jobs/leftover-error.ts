import { AppError } from './errors.ts'

/** A machine that can never be destroyed. Deputy deletes its record, and the message says what is left and where. */
export const leftoverError = (message: string, hint: string): AppError =>
  new AppError('unavailable', message, { hint, retryable: false, details: LEFT_BEHIND })

export const isLeftoverError = (error: AppError): boolean => error.details === LEFT_BEHIND

const LEFT_BEHIND = { leftBehind: true }
