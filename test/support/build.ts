import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Integration tests start the product as its users do, from dist/; so dist/ must match src/. */
export default function build(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  })
}
