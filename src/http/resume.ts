import { AppError } from '../jobs/errors.ts'
import type { Call } from './route.ts'

export interface Resume {
  /** Where to resume; undefined for the beginning. */
  readonly at: number | undefined
  /** The client has received the end; a browser that reconnects must be told to stop. */
  readonly ended: boolean
}

const LAST_EVENT_ID = /^(-?\d{1,15})(:end)?$/

/** A browser that reconnects sends the id of its last event; the header takes precedence over the query. */
export const resumePoint = (call: Call, asked: number | undefined): Resume => {
  const header = call.request.headers.get('last-event-id')
  if (header === null || header === '') return { at: asked, ended: false }
  const match = LAST_EVENT_ID.exec(header)
  if (match === null)
    throw new AppError('invalid', `Invalid Last-Event-ID '${header.slice(0, 60)}' for this stream.`, {
      hint: 'Send the id of the last event that arrived, or leave the header out to start at the beginning.',
    })
  return { at: Number(match[1]), ended: match[2] !== undefined }
}

export const endId = (at: number): string => `${at}:end`
