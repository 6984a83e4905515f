import { settingNames } from '../../config/setting-names.ts'
import { directoryHeader } from '../bridge-client.ts'
import { environmentHeader } from '../session-environment.ts'
import { unknownToolset } from './toolset-names.ts'

export interface BridgeHeaders {
  /** The user asked for something that does not exist: do not start. */
  readonly error?: string
  readonly headers: Readonly<Record<string, string>>
  readonly problems: readonly string[]
}

/** Reads the client's selection from the arguments or the environment, as headers for the daemon. */
export const bridgeHeaders = (argv: readonly string[], env: NodeJS.ProcessEnv): BridgeHeaders => {
  let toolsets = env.DEPUTY_TOOLSETS ?? ''
  let readOnly = !['', '0', 'false', undefined].includes(env.DEPUTY_READ_ONLY)
  const problems: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? ''
    if (argument === '--read-only') readOnly = true
    else if (argument === '--toolsets') toolsets = argv[++i] ?? ''
    else if (argument.startsWith('--toolsets=')) toolsets = argument.slice('--toolsets='.length)
    // Do not fail: a client only shows a closed connection when its server does not start.
    else problems.push(`ignored unknown option '${argument}'`)
  }
  const settings = settingNames(env).join(',')
  const error = unknownToolset(toolsets)
  return {
    ...(error !== undefined && { error }),
    headers: {
      ...(settings !== '' && { 'x-deputy-settings': settings }),
      ...(toolsets !== '' && { 'x-deputy-toolsets': toolsets }),
      ...(readOnly && { 'x-deputy-read-only': '1' }),
      ...environmentHeader(env),
      ...directoryHeader(() => process.cwd()),
    },
    problems,
  }
}
