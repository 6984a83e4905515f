import type { OutputPage, OutputPiece } from '../engine/deputy.ts'
import { formatSize } from '../jobs/sizes.ts'
import type { Context } from './context.ts'
import { createSafeOutput } from './terminal/safe-output.ts'
import type { Writer } from './terminal/writer.ts'

export interface OutputPrinter {
  print(page: OutputPage): Promise<void>
  end(): Promise<void>
  /** Whether the cursor stands at the beginning of a line, where other text may go. */
  readonly atLineStart: boolean
}

/**
 * Prints a job's stdout to stdout and its stderr to stderr. A pipe gets the bytes unchanged; on a terminal,
 * control sequences are made harmless unless `raw` is set.
 */
export const createOutputPrinter = (context: Context, options: { raw: boolean }): OutputPrinter => {
  const targets = {
    stdout: target(context.out, options.raw, context.colors.enabled),
    stderr: target(context.err, options.raw, context.errColors.enabled),
  }
  let atLineStart = true

  const printPiece = async (piece: OutputPiece): Promise<void> => {
    if ('skipped' in piece) {
      const note = `${atLineStart ? '' : '\n'}[… ${formatSize(piece.skipped)} of output skipped …]\n`
      await context.err.write(context.errColors.dim(note))
      atLineStart = true
      return
    }
    const last = await targets[piece.stream].push(piece.data)
    if (last !== undefined) atLineStart = last === '\n'
  }

  return {
    print: async page => {
      for (const piece of page.pieces) await printPiece(piece)
    },
    end: async () => {
      await targets.stdout.end()
      await targets.stderr.end()
    },
    get atLineStart() {
      return atLineStart
    },
  }
}

const target = (writer: Writer, raw: boolean, colors: boolean) => {
  const safe = writer.isTTY && !raw ? createSafeOutput({ colors }) : undefined
  let used = false
  return {
    /** Resolves with the last character that was written, if any was. */
    push: async (data: Uint8Array): Promise<string | undefined> => {
      used = true
      if (!safe) {
        await writer.write(data)
        return data.length === 0 ? undefined : String.fromCharCode(data[data.length - 1]!)
      }
      const text = safe.push(data)
      if (text !== '') await writer.write(text)
      return text.at(-1)
    },
    end: async (): Promise<void> => {
      const text = used && safe ? safe.end() : ''
      if (text !== '') await writer.write(text)
    },
  }
}
