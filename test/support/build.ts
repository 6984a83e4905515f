import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Integration tests start the product as its users do, from dist/; so dist/ must match src/. */
export default function build(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  for (const project of ['tsconfig.build.json', 'web'])
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', project], {
      cwd: root,
      stdio: 'inherit',
    })
}
