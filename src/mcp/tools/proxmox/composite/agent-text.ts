import { AppError } from '../../../../jobs/errors.ts'

/**
 * Proxmox passes each byte from the guest as a Latin-1 character. In the other direction, a character beyond ASCII in a
 * command hangs the agent until the guest is reset.
 */
export const fromGuest = (text: unknown): string =>
  typeof text === 'string' ? Buffer.from(text, 'latin1').toString('utf8') : ''

export const asciiOnly = (label: string, text: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant
  if (/^[\x00-\x7f]*$/.test(text)) return text
  throw new AppError(
    'invalid',
    `'${label}' may hold ASCII characters only: anything else hangs the guest agent.`,
    {
      hint: 'Write the text to a file with proxmox_agent_file write, then use that file.',
    },
  )
}
