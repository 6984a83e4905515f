import { spawnSync } from 'node:child_process'

/** Whether a program is installed; where it is not, what needs it is skipped. */
export const has = (tool: string): boolean =>
  spawnSync('sh', ['-c', 'command -v "$1"', 'sh', tool]).status === 0
