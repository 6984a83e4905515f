import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Document, isMap, isSeq, parseDocument, visit, type YAMLSeq } from 'yaml'
import { AppError } from '../../jobs/errors.ts'

/** Adds a node to the configuration file. Comments and the order of everything else stay. */
export const addNodeTo = (file: string, node: Readonly<Record<string, unknown>>): void =>
  edit(file, (nodes, document) => {
    const entry = document.createNode(node)
    // Write a list of thirty tools on one line, not thirty.
    visit(entry, {
      Seq: (_, list) => {
        list.flow = true
      },
    })
    nodes.add(entry)
  })

/** Removes a node; false when the file has no node with that id. */
export const removeNodeFrom = (file: string, id: string): boolean => {
  let removed = false
  edit(file, nodes => {
    const index = nodes.items.findIndex(item => isMap(item) && item.get('id') === id)
    if (index < 0) return
    nodes.delete(index)
    removed = true
  })
  return removed
}

const isSettings = (document: { contents: unknown }): boolean =>
  document.contents === null || isMap(document.contents)

const edit = (file: string, change: (nodes: YAMLSeq, document: Document) => void): void => {
  const parsed = parseDocument(existsSync(file) ? readFileSync(file, 'utf8') : '')
  const problem =
    parsed.errors[0]?.message.split('\n')[0] ?? (isSettings(parsed) ? undefined : 'it is no list of settings')
  if (problem !== undefined) {
    throw new AppError('invalid', `${file} cannot be changed: ${problem}`, { hint: `Correct ${file} first.` })
  }
  const document: Document = parsed.contents === null ? new Document({}) : parsed
  if (!isMap(document.get('cluster'))) document.set('cluster', document.createNode({}))
  if (!isSeq(document.getIn(['cluster', 'nodes'])))
    document.setIn(['cluster', 'nodes'], document.createNode([]))
  const nodes = document.getIn(['cluster', 'nodes']) as YAMLSeq
  nodes.flow = false
  change(nodes, document)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // Write to a temporary file and rename it, so that readers never see half a configuration.
  writeFileSync(`${file}.new`, document.toString({ lineWidth: 0 }), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
