import { AppError } from '../jobs/errors.ts'
import { damaged, openDatabase } from './database.ts'

/** Throws when the structure of a database is damaged; stops at the first problem. Changes nothing. */
export const quickCheck = (path: string): void => {
  const database = openDatabase(path)
  try {
    const found = database.get('pragma quick_check(1)')?.quick_check
    if (found !== 'ok') throw damaged(path, String(found))
  } catch (error) {
    if (error instanceof AppError && error.code === 'internal') throw damaged(path, error.message)
    throw error
  } finally {
    database.close()
  }
}
