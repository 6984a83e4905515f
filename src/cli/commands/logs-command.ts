import { encodePage } from '../../client/encode-output.ts'
import type { OutputPage } from '../../engine/deputy.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { createOutputPrinter } from '../print-output.ts'
import { resolveJobId } from '../resolve-id.ts'
import { lastLines } from '../tail.ts'
import { WATCH_FLAGS } from './job-flags.ts'

const PAGE_BYTES = 256 * 1024

export default defineCommand({
  usage: '[flags] ID',
  takesJobs: true,
  description: `The job's stdout goes to stdout and its stderr to stderr, byte for byte. On a terminal, control sequences other
than colours are printed as text.`,
  examples: [['deputy logs -f last', 'follow the latest job to its end']],
  flags: {
    follow: { type: 'boolean', short: 'f', summary: 'Follow the output until the job ends' },
    tail: { type: 'number', short: 'n', value: 'LINES', summary: 'Print only the last lines' },
    raw: WATCH_FLAGS.raw,
    json: { ...JSON_FLAG, summary: 'Print JSON; one page per line with --follow' },
  },
  async run(context, { flags, args }) {
    const client = await context.client()
    const id = await resolveJobId(client, args[0])
    const signal = context.out.closed
    const printer = createOutputPrinter(context, { raw: flags.raw })
    let cursor = 0
    if (flags.tail !== undefined) {
      const page = await lastLines(client, id, flags.tail, signal)
      cursor = page.next_cursor
      if (flags.json) await context.print(`${JSON.stringify(encodePage(page))}\n`)
      else await printer.print(page)
    } else if (!flags.follow && flags.json) {
      return context.printJson(encodePage(await whole()))
    }
    if (flags.follow) {
      for await (const page of client.follow(id, { cursor, signal }))
        if (flags.json) await context.print(`${JSON.stringify(encodePage(page))}\n`)
        else await printer.print(page)
    } else if (flags.tail === undefined) for await (const page of pages()) await printer.print(page)
    await printer.end()
    return 0

    /** The output so far, page by page; stops at the current end even if the job keeps printing. */
    async function* pages(): AsyncGenerator<OutputPage> {
      const end = (await client.output(id, { cursor: -1, maxBytes: 1, signal })).next_cursor
      for (let at = 0; ; ) {
        const page = await client.output(id, { cursor: at, maxBytes: PAGE_BYTES, signal })
        yield page
        if (page.next_cursor <= at || page.next_cursor >= end) return
        at = page.next_cursor
      }
    }

    async function whole(): Promise<OutputPage> {
      const all: OutputPage[] = []
      for await (const page of pages()) all.push(page)
      return { ...all.at(-1)!, pieces: all.flatMap(page => page.pieces) }
    }
  },
})
