import { formatSize } from '../../jobs/sizes.ts'
import type { Check, Readiness } from '../../ports.ts'
import { findImage } from './image-store.ts'
import type { ProviderContext } from './provider-context.ts'
import { missingTools } from './required-tools.ts'
import { noImage } from './unmet-microvm-requirement.ts'

/** For doctor. */
export const checkMicrovm = (context: Pick<ProviderContext, 'imagesDir' | 'image'>): Readiness => {
  const tools = toolsCheck()
  const image = imageCheck(context.imagesDir, context.image)
  const ready = tools.status === 'ok' && image.status === 'ok'
  return { runtime: 'microvm', ready, checks: [tools, image] }
}

const toolsCheck = (): Check => {
  const missing = missingTools('run')
  return missing.length === 0
    ? {
        name: 'qemu',
        status: 'ok',
        message: 'QEMU and bubblewrap are installed; VMs are emulated, without KVM',
      }
    : {
        name: 'qemu',
        status: 'failed',
        message: `not installed: ${missing.map(({ program }) => program).join(', ')}`,
        fix: `apt install ${missing.map(tool => tool.package).join(' ')}`,
      }
}

const imageCheck = (imagesDir: string, name: string): Check => {
  const image = findImage(imagesDir, name)
  if (image === undefined) {
    const { reason, hint } = noImage(name)
    return { name: 'image', status: 'failed', message: reason, fix: hint.replace('Make it: ', '') }
  }
  const { contents, kernel, bytes } = image
  return {
    name: 'image',
    status: 'ok',
    message: `${name}: ${contents}, kernel ${kernel}, ${formatSize(bytes)}`,
  }
}
