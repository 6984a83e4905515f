import { forEachChild, type SyntaxNode } from 'unbash'

const MAX_DEPTH = 100

/** Finds `f() { f | f & }`. */
export const findForkBomb = (node: SyntaxNode, depth = 0): string | undefined => {
  if (node.type === 'Function' && multiplies(node.body, node.name.value)) return node.name.value
  let found: string | undefined
  if (depth < MAX_DEPTH)
    forEachChild(node, child => {
      found ??= findForkBomb(child, depth + 1)
    })
  return found
}

/** The function calls itself twice in a pipe, or in the background, and nothing can stop it. */
const multiplies = (body: SyntaxNode, name: string): boolean => {
  let forks = false
  let guarded = false
  const visit = (node: SyntaxNode, background: boolean, depth: number): void => {
    if (depth > MAX_DEPTH || CONDITIONAL.has(node.type)) return
    if (node.type === 'Command') {
      if (/^(?:return|exit|break)$/.test(node.name?.value ?? '')) guarded = true
      if (node.name?.value === name && background) forks = true
    }
    if (node.type === 'AndOr') guarded = true
    const crowd =
      node.type === 'Pipeline' &&
      node.commands.filter(command => command.type === 'Command' && command.name?.value === name).length > 1
    const inBackground = background || crowd || (node.type === 'Statement' && node.background === true)
    forEachChild(node, child => visit(child, inBackground, depth + 1))
  }
  visit(body, false, 0)
  return forks && !guarded
}

const CONDITIONAL = new Set(['If', 'For', 'While', 'Case', 'Select', 'Function'])
