import { AppError, toAppError } from '../../jobs/errors.ts'

/** Like `toAppError`, but reports a full disk as temporarily unavailable, not as an internal error. */
export const toLocalError = (thrown: unknown): AppError => {
  const code = (thrown as NodeJS.ErrnoException | undefined)?.code
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return toAppError(thrown)
  return new AppError('unavailable', 'The disk that holds the state of Deputy is full.', {
    hint: 'Free some space, or delete finished jobs. Run: deputy daemon status (shows the directory)',
    cause: thrown,
  })
}
