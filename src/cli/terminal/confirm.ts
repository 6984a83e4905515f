import { createInterface } from 'node:readline/promises'

/** Asks on the terminal; anything but a yes is a no, and so is the end of input. */
export const confirm = async (question: string): Promise<boolean> => {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const closed = new Promise<string>(resolve => prompt.once('close', () => resolve('')))
    const answer = await Promise.race([prompt.question(`${question} [y/N] `), closed])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    prompt.close()
  }
}
