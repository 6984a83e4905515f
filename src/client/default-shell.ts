/** bash where the machine has it, else sh. */
export const DEFAULT_SHELL: readonly string[] = [
  'sh',
  '-c',
  'command -v bash >/dev/null && exec bash; exec sh',
]
