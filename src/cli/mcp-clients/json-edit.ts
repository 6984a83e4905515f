import { findNodeAtLocation, type JSONPath, type Node, parseTree } from 'jsonc-parser'

/** Sets a property of a JSON text with comments. Nothing else is formatted again. */
export const setProperty = (text: string, path: JSONPath, value: unknown): string => {
  const root = parse(text)
  const known = findNodeAtLocation(root, path)
  if (known) return splice(text, known.offset, known.length, pretty(text, value, path.length))
  const parent = findNodeAtLocation(root, path.slice(0, -1))
  if (!parent) return setProperty(text, path.slice(0, -1), { [String(path.at(-1))]: value })
  const property = `${JSON.stringify(path.at(-1))}: ${pretty(text, value, path.length)}`
  return insert(text, parent, property, path.length)
}

export const removeProperty = (text: string, path: JSONPath): string => {
  const property = findNodeAtLocation(parse(text), path)?.parent
  const siblings = property?.parent?.children
  if (!property || !siblings) return text
  const index = siblings.indexOf(property)
  const end = property.offset + property.length
  // The white space before the property goes with it, so that its line disappears.
  const start = text.slice(0, property.offset).trimEnd().length
  const previous = siblings[index - 1]
  const comma = /^\s*,/.exec(text.slice(end))
  // A comma after the property goes with it. Without one it was the last, and the comma before it was there for it.
  if (comma) return splice(text, start, end + comma[0].length - start, '')
  const without = splice(text, start, end - start, '')
  const at = previous ? previous.offset + previous.length : -1
  return without[at] === ',' ? splice(without, at, 1, '') : without
}

const parse = (text: string): Node => {
  const root = parseTree(text, [], { allowTrailingComma: true })
  if (!root) throw new Error('the caller has parsed this text')
  return root
}

const insert = (text: string, parent: Node, property: string, depth: number): string => {
  const close = parent.offset + parent.length - 1
  const last = parent.children?.at(-1)
  const line = `${eolOf(text)}${indentOf(text).repeat(depth)}`
  const outer = `${eolOf(text)}${indentOf(text).repeat(depth - 1)}`
  if (!last) return splice(text, parent.offset, parent.length, `{${line}${property}${outer}}`)
  const lastEnd = last.offset + last.length
  const hasComma = /^\s*,/.test(text.slice(lastEnd, close))
  // Insert before the white space in front of the brace: a comment behind the last property stays with it.
  const at = text.slice(0, close).trimEnd().length
  const isInline = !text.slice(at, close).includes('\n')
  const inserted = splice(text, at, 0, `${isInline ? ' ' : line}${property}${hasComma ? ',' : ''}`)
  return hasComma ? inserted : splice(inserted, lastEnd, 0, ',')
}

const pretty = (text: string, value: unknown, depth: number): string =>
  JSON.stringify(value, null, indentOf(text)).replaceAll(
    '\n',
    `${eolOf(text)}${indentOf(text).repeat(depth)}`,
  )

const indentOf = (text: string): string => /^([ \t]+)["/]/m.exec(text)?.[1] ?? '  '
const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n')

const splice = (text: string, at: number, length: number, replacement: string): string =>
  text.slice(0, at) + replacement + text.slice(at + length)
