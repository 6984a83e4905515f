// Bundles the shim and the daemon with their dependencies, from the compiled files: loading hundreds of small files
// costs a shim half of its memory and a daemon half of its start. `node scripts/bundle.js [DIRECTORY]`, default dist.
// Runs after tsc, whose file it replaces with the bundle of the daemon.
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiled = resolve(root, process.argv[2] ?? 'dist')

/** Modules find files of the package relative to their own place. Every bundle lies in a folder of the compiled files. */
const keepPlaces = {
  name: 'keep-places',
  transform: (code, id) => {
    const path = relative(compiled, id)
    if (path.startsWith('..') || !code.includes('import.meta.url')) return null
    return code.replaceAll(
      'import.meta.url',
      `new URL(${JSON.stringify(`../${path}`)}, import.meta.url).href`,
    )
  },
}

/** One file each: both live on when an upgrade replaces the package, and what they loaded later would be gone. */
const bundle = (entry, output, external = []) =>
  build({
    root,
    configFile: false,
    logLevel: 'warn',
    plugins: [keepPlaces],
    build: {
      ssr: `${compiled}/${entry}`,
      outDir: compiled,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: { external, output: { entryFileNames: output, codeSplitting: false } },
    },
    ssr: { noExternal: true },
  })

await bundle('providers/local/shim.js', 'shim/shim.js')
// libsql is native; the others are loaded only where they are used.
await bundle('cli/serve-daemon.js', 'cli/serve-daemon.js', ['libsql', 'pg', 'yaml'])
