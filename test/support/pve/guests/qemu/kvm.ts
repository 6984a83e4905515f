import { spawn } from 'node:child_process'

/** What the firmware of QEMU says when it is through. */
const LAST_WORDS = 'No bootable device'

/**
 * Whether a processor really runs under KVM. A device file proves nothing: inside some virtual machines it can
 * be opened, and then some instruction never ends. So the firmware must come to its end in time.
 */
export const kvmWorks = (program: string, timeoutMs = 5000): Promise<boolean> =>
  new Promise(resolve => {
    const child = spawn(
      program,
      [
        ...['-machine', 'pc', '-accel', 'kvm', '-cpu', 'host', '-m', '64', '-nodefaults', '-display', 'none'],
        ...['-chardev', 'stdio,id=firmware', '-device', 'isa-debugcon,iobase=0x402,chardev=firmware'],
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    )
    const settle = (works: boolean) => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      // One that hangs in the kernel does not even die; nobody waits for it.
      child.unref()
      child.stdout.destroy()
      resolve(works)
    }
    const timer = setTimeout(() => settle(false), timeoutMs)
    let said = ''
    child.stdout.setEncoding('latin1').on('data', text => {
      said = `${said}${text}`.slice(-4096)
      if (said.includes(LAST_WORDS)) settle(true)
    })
    child.once('error', () => settle(false))
    child.once('exit', () => settle(false))
  })
