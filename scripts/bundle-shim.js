// Bundles the shim with the parts of its dependencies that it uses, from the compiled files: one runs for each local
// job, and loading them one by one costs it half of its memory. `node scripts/bundle-shim.js [DIRECTORY]`, default dist.
// It is one file, because a shim lives on when an upgrade replaces the package: what it loaded later would be gone.
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = process.argv[2] ?? 'dist'

await build({
  root,
  configFile: false,
  logLevel: 'warn',
  build: {
    ssr: `${compiled}/providers/local/shim.js`,
    // As deep as the compiled files that the shim names by their path.
    outDir: `${compiled}/shim`,
    emptyOutDir: true,
    target: 'node20',
    minify: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
  ssr: { noExternal: true },
})
