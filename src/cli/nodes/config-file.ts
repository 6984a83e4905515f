import { type Document, isMap, isSeq, visit, type YAMLSeq } from 'yaml'
import { editConfigFile } from '../../config/config-document.ts'

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

const edit = (file: string, change: (nodes: YAMLSeq, document: Document) => void): void =>
  editConfigFile(file, document => {
    if (!isMap(document.get('cluster'))) document.set('cluster', document.createNode({}))
    if (!isSeq(document.getIn(['cluster', 'nodes'])))
      document.setIn(['cluster', 'nodes'], document.createNode([]))
    const nodes = document.getIn(['cluster', 'nodes']) as YAMLSeq
    nodes.flow = false
    change(nodes, document)
  })
