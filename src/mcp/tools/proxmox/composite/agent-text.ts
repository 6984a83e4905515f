import { AppError } from '../../../../jobs/errors.ts'

/**
 * Proxmox hands bytes of the guest over as if each were a Latin-1 character, and a character beyond that set in a
 * command wedges the agent until the guest is reset.
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
