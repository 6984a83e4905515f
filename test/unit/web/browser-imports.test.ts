import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Imports that are left when the types are erased, also dynamic ones. */
const IMPORTS =
  /(?:^(?:import|export)\s+(?!type\b)(?:([^'";]*?)\s+from\s+)?|import\(\s*)'((?:\.|node:)[^']+)'/gm
const ONLY_TYPES = /^\{(\s*type\s[^,}]*,?)+\s*\}$/

const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(IMPORTS)]
    .filter(([, names = '']) => !ONLY_TYPES.test(names.trim()))
    .map(([, , target]) => target!)

it('reach no module of Node from the console', () => {
  const seen = new Set<string>()
  const wrong: string[] = []
  const visit = (file: string): void => {
    if (seen.has(file) || !/\.tsx?$/.test(file)) return
    seen.add(file)
    for (const target of importsOf(file)) {
      if (target.startsWith('node:')) wrong.push(`${relative(ROOT, file)} imports ${target}`)
      else visit(resolve(dirname(file), target))
    }
  }
  visit(resolve(ROOT, 'web/main.tsx'))
  expect(wrong).toEqual([])
  // The shared client is among them.
  expect(seen).toContain(resolve(ROOT, 'src/client/job-calls.ts'))
})
