// Bundles the shim, the daemon and the command line, from the compiled files: loading hundreds of small files costs a
// shim half of its memory, a daemon half of its start, and a command a quarter of its time.
// `node scripts/bundle.js [DIRECTORY]`, default dist. Runs after tsc, whose files it replaces.
import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
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

const bundle = ({ entry, directory = compiled, output, external, withDependencies }) =>
  build({
    root,
    configFile: false,
    logLevel: 'error',
    plugins: [keepPlaces],
    build: {
      ssr: `${compiled}/${entry}`,
      outDir: directory,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: { external, output },
    },
    ssr: { noExternal: withDependencies ? true : [] },
  })

/** One file each: both live on when an upgrade replaces the package, and what they loaded later would be gone. */
const bundleProcess = (entry, output, external = []) =>
  bundle({
    entry,
    output: { entryFileNames: output, codeSplitting: false },
    external,
    withDependencies: true,
  })

/** The modules that these files import, directly or not, except those that are loaded when they are used. */
const importedBy = files => {
  const found = new Set()
  const add = file => {
    if (found.has(file)) return
    found.add(file)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/^(?:im|ex)port\b[^'\n]*'(\.[^']+)'/gm))
      add(resolve(dirname(file), path))
  }
  for (const file of files) add(resolve(compiled, file))
  return found
}

/** What `deputy run` loads is one file; the rest stays apart. Without hashes: a command may load a part after an upgrade. */
const bundleCommandLine = () => {
  const run = ['cli/run-cli.js', 'cli/commands/run-command.js', 'cli/watch-job.js']
  const modules = importedBy([...run, 'client/daemon-client.js', 'client/ensure-daemon.js'])
  return bundle({
    entry: 'cli/run-cli.js',
    // That of the entry: what is not bundled is named relative to it.
    directory: `${compiled}/cli`,
    output: {
      entryFileNames: 'run-cli.js',
      chunkFileNames: 'part-[name].js',
      codeSplitting: { groups: [{ name: 'run', test: id => modules.has(id) }] },
    },
    external: [/cli\/serve-daemon\.js$/],
    withDependencies: false,
  })
}

await bundleCommandLine()
await bundleProcess('providers/local/shim.js', 'shim/shim.js')
// libsql is native; the others are loaded only where they are used.
await bundleProcess('cli/serve-daemon.js', 'cli/serve-daemon.js', ['libsql', 'pg', 'yaml'])
