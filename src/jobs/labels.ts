/** Labels that Deputy adds to jobs. */

/** On a routed command: `local`, or `node` when it is sent to a node. */
export const COMMAND_LABEL = 'deputy/command'

/** On a command of a batch: its index in the batch. */
export const INDEX_LABEL = 'deputy/index'

/** On a command with a workspace: the source directory. The next upload from there sends only what changed. */
export const WORKSPACE_LABEL = 'deputy/workspace'

/** On a job that continues another one after a review: the id of that job. */
export const FOLLOWS_LABEL = 'deputy/follows'

export const isOwnLabel = (name: string): boolean => name.startsWith('deputy/')
