/** Shell text as the guest reads it. A backslash is a backslash; only the `\${` of TypeScript loses its own. */
export const sh = ({ raw }: TemplateStringsArray): string => raw.join('').trimStart().replaceAll('\\${', '${')
