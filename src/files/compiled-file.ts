import { fileURLToPath } from 'node:url'

/** Path of a compiled file, named as it lies in dist/. Tests run from the sources and get the file in dist/ as well. */
export const compiledFile = (path: string): string =>
  fileURLToPath(new URL(`../${path}`, import.meta.url.replace(/\/src\/files\/[^/]+$/, '/dist/files/')))
