import { isNodeVariable } from '../nodes/cluster-variables.ts'

/**
 * The environment for a daemon that an MCP client starts. The nodes of the client belong to its session, so they do not
 * become nodes of the daemon.
 */
export const withoutNodeVariables = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !isNodeVariable(name)))
