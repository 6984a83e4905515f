import type { CallToolResult } from '@modelcontextprotocol/server'
import type { AppError } from '../jobs/errors.ts'
import type { ToolOutcome } from './tool.ts'

/** The structured result, and the same as text for clients that only read text. */
export const toResult = ({ data }: ToolOutcome): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(data) }],
  structuredContent: { ...data },
})

/** An error that a model can act on: the problem and the next step, without a stack trace. */
export const toErrorResult = (error: AppError): CallToolResult => ({
  content: [{ type: 'text', text: errorText(error) }],
  isError: true,
})

export const errorText = (error: AppError): string =>
  [
    error.message,
    error.hint === undefined ? undefined : `Next: ${error.hint}`,
    error.retryable ? 'Try again later.' : undefined,
  ]
    .filter(line => line !== undefined)
    .join('\n')
