import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Integration tests start the product, and the Proxmox VE stand-in, as their users do: compiled. */
export default function build(): void {
  // Set by scripts/mutants, which compiles what it has changed.
  if (process.env.DEPUTY_TEST_BUILT === '1') return
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const run = (...words: string[]) => execFileSync(process.execPath, words, { cwd: root, stdio: 'inherit' })
  for (const project of ['tsconfig.build.json', 'test/support/pve'])
    run('node_modules/typescript/bin/tsc', '-p', project)
  run('node_modules/vite/bin/vite.js', 'build', 'web', '--logLevel', 'warn')
  run('scripts/copy-programs.js')
  run('scripts/bundle.js')
}
