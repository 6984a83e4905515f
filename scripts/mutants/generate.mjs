// Small faults, one at a time: a comparison that is off by one, a condition that is turned around, a call left out.
import { parseAst } from 'vitest/node'

const SWAPS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
}

/** Words whose exact value is a promise: how files are opened and how the database flushes. */
const WORDS = [
  [/^wx$/, 'w'],
  [/synchronous\s*=\s*full/i, 'synchronous=normal'],
  [/\bbegin immediate\b/i, 'begin deferred'],
]

/** Nodes that say nothing about behaviour at run time. */
const SKIPPED = new Set([
  'ImportDeclaration',
  'ExportAllDeclaration',
  'TSInterfaceDeclaration',
  'TSTypeAliasDeclaration',
])

/** Each mutant replaces the text from `start` to `end`. */
export const mutantsOf = source => {
  const found = []
  const replace = (node, text, what) =>
    found.push({ start: node.start, end: node.end, text, what, line: lineAt(source, node.start) })
  const text = node => source.slice(node.start, node.end)

  const visit = node => {
    if (SKIPPED.has(node.type) || node.type.startsWith('TSType')) return
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const swap = SWAPS[node.operator]
        if (swap)
          replace(node, `(${text(node.left)} ${swap} ${text(node.right)})`, `${node.operator} → ${swap}`)
        if (node.operator === '??') replace(node, text(node.left), 'drop the default')
        break
      }
      case 'UnaryExpression':
        if (node.operator === '!') replace(node, text(node.argument), 'drop the !')
        break
      case 'IfStatement':
      case 'ConditionalExpression':
        replace(node.test, 'true', 'always')
        replace(node.test, 'false', 'never')
        break
      case 'Literal':
        if (typeof node.value === 'boolean') replace(node, String(!node.value), 'the opposite')
        // Longer times and larger sizes are rarely a fault.
        if (typeof node.value === 'number' && node.value <= 2)
          replace(node, String(node.value + 1), 'one more')
        if (typeof node.value === 'string') replaceWords(node, replace, text)
        break
      case 'TemplateLiteral':
        replaceWords(node, replace, text)
        break
      case 'ExpressionStatement':
        if (/^(await |void )?[\w.?!]+\(/.test(text(node))) replace(node, ';', 'leave out the call')
        break
    }
    for (const child of Object.values(node))
      for (const one of Array.isArray(child) ? child : [child])
        if (typeof one?.type === 'string' && typeof one.start === 'number') visit(one)
  }
  visit(parseAst(source, { lang: 'ts' }))
  return found
}

const replaceWords = (node, replace, text) => {
  const inner = text(node).slice(1, -1)
  for (const [pattern, word] of WORDS) {
    if (!pattern.test(inner)) continue
    replace(
      node,
      text(node)[0] + inner.replace(pattern, word) + text(node).at(-1),
      `${pattern.source} → ${word}`,
    )
  }
}

const lineAt = (source, offset) => source.slice(0, offset).split('\n').length
