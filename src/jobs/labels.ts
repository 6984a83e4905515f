/** Labels that Deputy itself puts on jobs. */

/** On a routed command: whether it stays here (`local`) or goes to a node. */
export const COMMAND_LABEL = 'deputy/command'

/** On a command of a batch: its place among its sisters. */
export const INDEX_LABEL = 'deputy/index'

/** Names where a workspace comes from: the next one from there sends only what changed. */
export const WORKSPACE_LABEL = 'deputy/workspace'
