import type { AttachRequest } from '../../ports.ts'

/** Whether the machine outlives the job. */
export const keeps = ({ manifest }: Pick<AttachRequest, 'manifest'>): boolean =>
  manifest.lifecycle === 'persistent' || manifest.machine !== undefined
