import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const directory = new URL('../../../dist/cli/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, directory), 'utf8')

it('what deputy run loads is one file, with its dependencies outside', () => {
  const imports = [...read('run-cli.js').matchAll(/^(?:im|ex)port\b.*from ["']([^"']+)["']/gm)].map(
    ([, name]) => name,
  )
  expect(imports.length).toBeGreaterThan(0)
  expect(imports.filter(name => !name!.startsWith('node:'))).toEqual([])
})

it('the other parts load the daemon from its own bundle, and nothing that is not there', () => {
  const parts = readdirSync(directory).filter(name => name.startsWith('part-') && name.endsWith('.js'))
  expect(parts).toContain('part-load-daemon.js')
  expect(read('part-load-daemon.js')).toContain('import("./serve-daemon.js")')
  for (const part of ['run-cli.js', ...parts])
    for (const [, name] of read(part).matchAll(/(?:from|import)\s*\(?["'](\.[^"']+)["']/g))
      expect(() => read(name!), `${part} imports ${name}`).not.toThrow()
})
