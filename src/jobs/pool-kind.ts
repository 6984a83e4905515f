/** The pool kind of a machine, from its record; empty for a machine without one. */
export const poolKindOf = ({ details }: { details: Readonly<Record<string, unknown>> }): string =>
  typeof details.kind === 'string' ? details.kind : ''
