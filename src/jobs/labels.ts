/** Labels that Deputy adds to jobs. */

/** On a routed command: `local`, or `node` when it is sent to a node. */
export const COMMAND_LABEL = 'deputy/command'

/** On a command of a batch: its index in the batch. */
export const INDEX_LABEL = 'deputy/index'

/** On a command with a workspace: the source directory. The next upload from there sends only what changed. */
export const WORKSPACE_LABEL = 'deputy/workspace'
