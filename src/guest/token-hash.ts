import { hash } from 'node:crypto'

/** How a token is kept: nobody needs the token itself. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex')
