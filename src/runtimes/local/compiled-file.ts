import { fileURLToPath } from 'node:url'

/** The compiled file of an entry point beside this one; from the sources (tests) it is the one in dist/. */
export const compiledFile = (name: string): string => {
  const here = import.meta.url.replace(/\/src\/(runtimes\/local\/[^/]+)\.ts$/, '/dist/$1.js')
  return fileURLToPath(new URL(name, here))
}
