import { settingNames } from '../../config/setting-names.ts'
import { directoryHeader } from '../bridge-client.ts'

export interface BridgeHeaders {
  readonly headers: Readonly<Record<string, string>>
  readonly problems: readonly string[]
}

/** The choices of a front, from its arguments or the environment a client's configuration gives it. */
export const bridgeHeaders = (argv: readonly string[], env: NodeJS.ProcessEnv): BridgeHeaders => {
  let toolsets = env.DEPUTY_TOOLSETS ?? ''
  let readOnly = !['', '0', 'false', undefined].includes(env.DEPUTY_READ_ONLY)
  const problems: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] ?? ''
    if (argument === '--read-only') readOnly = true
    else if (argument === '--toolsets') toolsets = argv[++i] ?? ''
    else if (argument.startsWith('--toolsets=')) toolsets = argument.slice('--toolsets='.length)
    // A client shows nothing but a closed connection when a server does not start.
    else problems.push(`'${argument}' is not an option of deputy mcp and was left out`)
  }
  const settings = settingNames(env).join(',')
  return {
    headers: {
      ...(settings !== '' && { 'x-deputy-settings': settings }),
      ...(toolsets !== '' && { 'x-deputy-toolsets': toolsets }),
      ...(readOnly && { 'x-deputy-read-only': '1' }),
      ...directoryHeader(() => process.cwd()),
    },
    problems,
  }
}
