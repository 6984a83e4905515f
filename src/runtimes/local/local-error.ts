import { AppError, toAppError } from '../../jobs/errors.ts'

/** Like toAppError, but a full disk is the computer's trouble and passes, no defect of ours. */
export const toLocalError = (thrown: unknown): AppError => {
  const code = (thrown as NodeJS.ErrnoException | undefined)?.code
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return toAppError(thrown)
  return new AppError('unavailable', 'The disk that holds the state of Deputy is full.', {
    hint: 'Make room on it (deputy daemon status tells where it is); finished jobs can be deleted.',
    cause: thrown,
  })
}
