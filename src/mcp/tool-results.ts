import type { CallToolResult } from '@modelcontextprotocol/server'
import type { AppError } from '../jobs/errors.ts'
import type { ToolOutcome } from './tool.ts'

/** The structured answer, and the same as text for clients that read only that. */
export const toResult = ({ data }: ToolOutcome): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(data) }],
  structuredContent: { ...data },
})

/** An error a model can act on: what is wrong and what to do next. Never a stack. */
export const toErrorResult = (error: AppError): CallToolResult => ({
  content: [{ type: 'text', text: errorText(error) }],
  isError: true,
})

export const errorText = (error: AppError): string =>
  [
    error.message,
    error.hint === undefined ? undefined : `Next: ${error.hint}`,
    error.retryable ? 'Trying again later can help.' : undefined,
  ]
    .filter(line => line !== undefined)
    .join('\n')
