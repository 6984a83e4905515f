/** What a machine of a pool was made for, as its record tells. */
export const kindOf = ({ details }: { details: Readonly<Record<string, unknown>> }): string =>
  typeof details.kind === 'string' ? details.kind : ''
