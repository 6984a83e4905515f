import type { Machine } from '../../ports.ts'

/** What is recorded of a machine. */
export interface MicrovmDetails {
  /** The image that it was booted from. */
  readonly image: string
  /** How its jobs are isolated. */
  readonly isolation: readonly string[]
  /** Set when it is ready for a command. It cannot boot twice. */
  readonly boot?: string
}

export const detailsOf = ({ details }: Pick<Machine, 'details'>): MicrovmDetails => {
  const { image, isolation, boot } = details
  return {
    image: typeof image === 'string' ? image : '',
    isolation: Array.isArray(isolation) ? isolation.map(String) : [],
    ...(typeof boot === 'string' && { boot }),
  }
}
