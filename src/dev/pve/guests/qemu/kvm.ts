import { spawn } from 'node:child_process'

/**
 * Whether a processor really runs under KVM. A device file proves nothing: inside some virtual machines it can
 * be opened, and then the first instruction never ends. So the firmware must say something in time.
 */
export const kvmWorks = (program: string, timeoutMs = 5000): Promise<boolean> =>
  new Promise(resolve => {
    const child = spawn(
      program,
      [
        ...['-machine', 'pc', '-accel', 'kvm', '-m', '64', '-nodefaults', '-display', 'none'],
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
    child.stdout.once('data', () => settle(true))
    child.once('error', () => settle(false))
    child.once('exit', () => settle(false))
  })
