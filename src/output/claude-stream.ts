import type { Usage } from '../jobs/job.ts'
import { isRecord } from '../jobs/records.ts'

export interface ClaudeStream {
  push(chunk: Buffer): void
  end(): void
  /** Whether a line is incomplete. */
  readonly holding: boolean
  /** Bytes of an incomplete line. */
  held(): Buffer
  summary(): { usage: Usage | null; error: string | null }
}

export interface ClaudeStreamOptions {
  onText(text: string): void
  onProgress(text: string): void
  /** Applied before texts are shortened: a truncated secret would not be recognised. */
  redact(text: string): string
}

const MAX_LINE_BYTES = 16 * 1024 * 1024
const SHORT = 200

/** Converts the `stream-json` output of the Claude CLI to readable text, progress and usage. */
export const createClaudeStream = ({ onText, onProgress, redact }: ClaudeStreamOptions): ClaudeStream => {
  let model: string | null = null
  let usage: Usage | null = null
  let error: string | null = null

  const event = (message: Json) => {
    switch (message.type) {
      case 'system':
        if (message.subtype === 'init') {
          model = text(message.model) ?? model
          onProgress(`claude started${model === null ? '' : ` (${model})`}`)
        }
        return
      case 'assistant':
        return blocks(message).forEach(assistantBlock)
      case 'user':
        return blocks(message).forEach(resultBlock)
      case 'result':
        return result(message)
    }
  }

  const assistantBlock = (block: Json) => {
    if (block.type === 'text') {
      const said = text(block.text)?.trimEnd()
      if (!said) return
      onText(`${said}\n`)
      onProgress(oneLine(said))
    } else if (block.type === 'tool_use') {
      const call = `${text(block.name) ?? 'tool'}${describeInput(block.input)}`
      onText(`→ ${call}\n`)
      onProgress(call)
    }
  }

  const resultBlock = (block: Json) => {
    if (block.type !== 'tool_result') return
    const failed = block.is_error === true
    const summary = oneLine(contentText(block.content))
    onText(`${failed ? '✗' : '←'} ${summary || (failed ? 'failed' : 'done')}\n`)
  }

  const result = (message: Json) => {
    const tokens = record(message.usage)
    usage = {
      inputTokens: count(tokens.input_tokens) + count(tokens.cache_creation_input_tokens),
      outputTokens: count(tokens.output_tokens),
      cacheReadTokens: count(tokens.cache_read_input_tokens),
      costUsd: number(message.total_cost_usd),
      turns: number(message.num_turns),
      model: model ?? Object.keys(record(message.modelUsage))[0] ?? null,
    }
    const subtype = text(message.subtype) ?? ''
    if (message.is_error === true || subtype.startsWith('error'))
      error = oneLine(
        text(message.result) || contentText(message.errors) || subtype || 'claude reported an error',
      )
  }

  const line = (bytes: Buffer) => {
    const source = bytes.toString('utf8')
    const message = parse(source)
    if (message !== undefined) event(record(mapStrings(message, redact)))
    else if (source.trim() !== '') onText(`${source}\n`)
  }

  const lines = createLineAssembler(line, () => onText('[a line of more than 16 MB was left out]\n'))
  return Object.assign(lines, { summary: () => ({ usage, error }) })
}

/** Splits a stream into lines; reports a line that is too long instead of passing it on. */
const createLineAssembler = (onLine: (line: Buffer) => void, onOverlong: () => void) => {
  let held: Buffer[] = []
  let heldBytes = 0
  let overlong = false
  return {
    push: (chunk: Buffer): void => {
      let from = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
        const whole = Buffer.concat([...held, chunk.subarray(from, end)])
        held = []
        heldBytes = 0
        from = end + 1
        if (!overlong) onLine(whole)
        overlong = false
      }
      if (overlong) return
      held.push(chunk.subarray(from))
      heldBytes += chunk.length - from
      if (heldBytes <= MAX_LINE_BYTES) return
      onOverlong()
      held = []
      heldBytes = 0
      overlong = true
    },
    end: (): void => {
      const rest = Buffer.concat(held)
      held = []
      heldBytes = 0
      if (rest.length > 0) onLine(rest)
    },
    get holding() {
      return heldBytes > 0
    },
    held: () => Buffer.concat(held),
  }
}

type Json = Record<string, unknown>

const parse = (source: string): Json | undefined => {
  if (!source.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(source)
    return isRecord(value) && typeof value.type === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

const blocks = (message: Json): Json[] => {
  const content = record(message.message).content
  return Array.isArray(content) ? content.filter(isRecord) : []
}

/** Shows the most informative argument: a command, a path, a pattern. */
const describeInput = (input: unknown): string => {
  const fields = record(input)
  const best = ['command', 'file_path', 'path', 'pattern', 'url', 'query', 'description', 'prompt']
    .map(name => text(fields[name]))
    .find(value => value)
  if (best) return `: ${oneLine(best)}`
  const rest = JSON.stringify(fields)
  return rest === '{}' ? '' : ` ${oneLine(rest)}`
}

const contentText = (content: unknown): string => {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map(part => (typeof part === 'string' ? part : (text(record(part).text) ?? ''))).join(' ')
}

const oneLine = (value: string): string => {
  const flat = value.replace(/\s+/g, ' ').trim()
  return flat.length > SHORT ? `${flat.slice(0, SHORT - 1)}…` : flat
}

const mapStrings = (value: unknown, change: (text: string) => string): unknown => {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(item => mapStrings(item, change))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapStrings(item, change)]))
}

const record = (value: unknown): Json => (isRecord(value) ? value : {})
const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const number = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null
const count = (value: unknown): number => number(value) ?? 0
