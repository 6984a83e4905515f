import { AppError } from './errors.ts'

/**
 * A failure that only a person with more rights than Deputy can fix. Deputy reports it and does not retry forever.
 */
export const operatorError = (message: string, hint: string): AppError =>
  new AppError('conflict', message, { hint, retryable: false, details: FOR_OPERATOR })

export const isOperatorError = (error: AppError): boolean => error.details === FOR_OPERATOR

const FOR_OPERATOR = { operator: true }
