import { AppError } from '../../src/jobs/errors.ts'

/** The AppError that a function throws. */
export const thrownError = (run: () => unknown): AppError => {
  try {
    run()
  } catch (error) {
    return appError(error)
  }
  throw new Error('nothing was thrown')
}

/** The AppError that a promise is rejected with. */
export const rejectedError = async (work: Promise<unknown>): Promise<AppError> =>
  appError(
    await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    ),
  )

const appError = (error: unknown): AppError => {
  if (error instanceof AppError) return error
  throw new Error(`expected an AppError, got ${String(error)}`, { cause: error })
}
