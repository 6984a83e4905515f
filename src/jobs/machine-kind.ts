/** The pool kind of a machine, from its record; empty for a machine without one. */
export const kindOf = ({ details }: { details: Readonly<Record<string, unknown>> }): string =>
  typeof details.kind === 'string' ? details.kind : ''
