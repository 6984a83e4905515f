import { hash } from 'node:crypto'

/** Only the hash of a token is stored. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex')
