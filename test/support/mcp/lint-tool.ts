import type { Tool } from '../../../src/mcp/tool.ts'

/** What would make a client drop or misread a tool. Toolsets run all their tools through it. */
export const lintTool = (tool: Tool): string[] => {
  const problems: string[] = []
  const require = (good: boolean, problem: string) => void (good || problems.push(problem))
  require(/^[a-z][a-z0-9_]{2,40}$/.test(
    tool.name,
  ), 'the name is not lower-case snake case of 3 to 41 characters')
  require(tool.title.length > 0, 'no title')
  require(tool.description.length > 0, 'no description')
  require(tool.description.length <= 400, 'a description longer than 400 characters')
  for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const)
    require(typeof tool.annotations[hint] === 'boolean', `no ${hint}`)
  require(!(tool.annotations.readOnlyHint && tool.annotations.destructiveHint), 'read-only and destructive')
  for (const key of ['oneOf', 'anyOf', 'allOf'])
    require(!(key in tool.input), `${key} at the top of the input schema: clients drop such a tool`)
  require(tool.input.type === 'object', 'the input is not an object')
  require(tool.input.additionalProperties === false, 'the input takes unknown arguments silently')
  require(!JSON.stringify(tool.input).includes(
    '9007199254740991',
  ), 'the range of safe integers in the schema')
  return problems
}
