import type { AttachRequest } from '../../ports.ts'

/** Whether the machine outlives the job. */
export const outlivesJob = ({ manifest }: Pick<AttachRequest, 'manifest'>): boolean =>
  manifest.lifecycle === 'persistent' || manifest.machine !== undefined
