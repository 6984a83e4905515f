import { guestPart } from './guest-part.ts'
import { writeIso } from './iso.ts'

export const COMPLETE = guestPart('complete-image')

/** A seed for one boot of a plain cloud image: installs what machines need, removes the identity, and powers off. */
export const templateSeed = (instanceId: string): Buffer =>
  writeIso('cidata', [
    { name: 'meta-data', content: Buffer.from(`${JSON.stringify({ 'instance-id': instanceId })}\n`) },
    {
      name: 'user-data',
      content: Buffer.from(`#cloud-config\n${JSON.stringify({ runcmd: [['/bin/sh', '-c', COMPLETE]] })}\n`),
    },
  ])
