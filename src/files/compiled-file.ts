import { fileURLToPath } from 'node:url'

/** Path of a compiled file, named as it lies in dist/. Tests run from the sources and get the file in dist/ as well. */
export const compiledFile = (path: string): string => {
  // The benchmarks are compiled with their own copy of the sources, in which a `.js` file lies below src/, too.
  const base = import.meta.url.replace(/\/src\/files\/[^/]+\.ts$/, '/dist/files/')
  return fileURLToPath(new URL(`../${path}`, base))
}
