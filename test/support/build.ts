import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Integration tests start the product, and the Proxmox VE stand-in, as their users do: compiled. */
export default function build(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  for (const project of ['tsconfig.build.json', 'web', 'test/support/pve'])
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', project], {
      cwd: root,
      stdio: 'inherit',
    })
  execFileSync(process.execPath, ['scripts/copy-programs.js'], { cwd: root, stdio: 'inherit' })
}
