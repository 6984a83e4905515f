import { onTestFinished } from 'vitest'
import { removeDirectory, startEngine, type TestEngine } from './engine.ts'

/** An engine that ends with the test, and so does its directory. */
export const begin = async (...args: Parameters<typeof startEngine>): Promise<TestEngine> => {
  const engine = await startEngine(...args)
  onTestFinished(async () => {
    await engine.close()
    removeDirectory(engine.directory)
  })
  return engine
}
