import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../../src/cli/commands/all-commands.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const markdown = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true }).flatMap(entry => {
    if (entry.name.startsWith('.') || ['node_modules', 'dist', 'coverage'].includes(entry.name)) return []
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return markdown(path)
    return entry.name.endsWith('.md') ? [path] : []
  })

const anchors = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

describe('the documentation', () => {
  const files = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'AGENTS.md']
    .map(name => join(ROOT, name))
    .concat(markdown(join(ROOT, 'docs')))

  it('has no dead links of its own', () => {
    const dead: string[] = []
    for (const file of files)
      for (const [, target] of readFileSync(file, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target!)) continue
        const [path, anchor] = target!.split('#')
        const to = path === '' ? file : resolve(dirname(file), path!)
        const broken = !existsSync(to) || (anchor !== undefined && !anchors(to).includes(anchor))
        if (broken) dead.push(`${relative(ROOT, file)}: ${target}`)
      }
    expect(dead).toEqual([])
  })

  it('speaks only of commands that exist', () => {
    const unknown: string[] = []
    for (const file of files)
      for (const [, command] of readFileSync(file, 'utf8').matchAll(/(?:^|[`$(] ?|-- )deputy ([a-z]+)/gm))
        if (!Object.hasOwn(COMMANDS, command!)) unknown.push(`${relative(ROOT, file)}: deputy ${command}`)
    expect(unknown).toEqual([])
  })

  it('keeps the page for agents short', () => {
    expect(readFileSync(join(ROOT, 'AGENTS.md'), 'utf8').split('\n').length).toBeLessThanOrEqual(100)
  })
})
