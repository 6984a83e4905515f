import { fileURLToPath } from 'node:url'

/** Path of a compiled entry point in this directory. Tests run from the sources and get the file in dist/. */
export const compiledFile = (name: string): string => {
  const here = import.meta.url.replace(/\/src\/(runtimes\/local\/[^/]+)\.ts$/, '/dist/$1.js')
  return fileURLToPath(new URL(name, here))
}
