import { AppError } from './errors.ts'

/** The end of a machine that nobody can destroy any more: its record goes, and the message says what is left where. */
export const leftBehind = (message: string, hint: string): AppError =>
  new AppError('unavailable', message, { hint, retryable: false, details: LEFT_BEHIND })

export const isLeftBehind = (error: AppError): boolean => error.details === LEFT_BEHIND

const LEFT_BEHIND = { leftBehind: true }
