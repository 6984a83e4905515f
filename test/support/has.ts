import { spawnSync } from 'node:child_process'

/** Whether a program is installed; where it is not, what needs it is skipped. */
export const has = (tool: string, morePath = ''): boolean =>
  spawnSync('sh', ['-c', 'PATH="$PATH:$2"; command -v "$1"', 'sh', tool, morePath]).status === 0
