import { describe, expect, it } from 'vitest'
import { type PlanContext, planCommand } from '../../../src/engine/plan-command.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'

const context = (more: Partial<PlanContext> = {}): PlanContext => ({
  jobId: 'id',
  presets: {},
  secretNames: ['ANTHROPIC_API_KEY', 'DEPLOY_KEY'],
  timeoutSeconds: 60,
  locate: () => ({ path: '/opt/claude/bin/claude', shows: ['/opt/claude/bin'] }),
  ...more,
})
const plan = (manifest: object, more: Partial<PlanContext> = {}) =>
  planCommand(parseManifest(manifest), context(more))

const HOSTILE = `"; touch /tmp/pwned; $(id) \`id\` ' \\ \n --help`

const PROTOTYPE_NAMES = ['constructor', 'toString', 'hasOwnProperty', 'valueOf']

describe('the command', () => {
  it('is rejected for an agent named like a property of Object.prototype', () => {
    expect(() => plan({ task: 'x', agentType: 'constructor' })).toThrow(/Unknown agent/)
  })

  it.each(PROTOTYPE_NAMES)('gets a secret called %s', name => {
    const made = plan({ task: 'x', secrets: [name], env: { A: '1' } }, { secretNames: [name] })
    expect(made.secretNames).toEqual([name])
  })

  it('for a script is the task, or the command, under bash', () => {
    expect(plan({ task: 'echo $HOME' }).argv).toEqual(['bash', '-c', 'echo $HOME'])
    expect(plan({ task: 'describe', agent: { command: 'make test' } }).argv).toEqual([
      'bash',
      '-c',
      'make test',
    ])
    expect(plan({ task: 'describe', agent: { command: ['printf', '%s', 'a b'] } }).argv).toEqual([
      'printf',
      '%s',
      'a b',
    ])
  })

  it('for claude is an argv in which the task is one argument behind --', () => {
    const { argv, secretNames, format, network, programs } = plan({
      task: HOSTILE,
      agentType: 'claude',
      agent: { claudeModel: 'opus' },
    })
    expect(argv[0]).toBe('/opt/claude/bin/claude')
    expect(argv.slice(-2)).toEqual(['--', HOSTILE])
    expect(argv.join(' ')).toContain('--model opus')
    expect(argv).toContain('--print')
    expect(secretNames).toEqual(['ANTHROPIC_API_KEY'])
    expect({ format, programs }).toEqual({ format: 'claude-stream-json', programs: ['/opt/claude/bin'] })
    expect(network).toContain('*.anthropic.com')
  })

  it('for claude without a token is rejected with instructions to set one', () => {
    expect(() => plan({ task: 'x', agentType: 'claude' }, { secretNames: [] })).toThrow(/has no token/)
    expect(
      plan({ task: 'x', agentType: 'claude', env: { ANTHROPIC_API_KEY: 'k' } }, { secretNames: [] })
        .secretNames,
    ).toEqual([])
  })

  it('for claude never sends its token to a host that the manifest chose', () => {
    for (const name of [
      'ANTHROPIC_BASE_URL',
      'ANTHROPIC_BEDROCK_BASE_URL',
      'ANTHROPIC_CUSTOM_HEADERS',
      'ANTHROPIC_UNIX_SOCKET',
      'CLAUDE_CONFIG_DIR',
      'CLAUDE_CODE_USE_BEDROCK',
      'CLAUDE_CODE_API_BASE_URL',
      'HTTPS_PROXY',
      'https_proxy',
      'ALL_PROXY',
      'NO_PROXY',
      'NODE_OPTIONS',
      'NODE_EXTRA_CA_CERTS',
      'NODE_TLS_REJECT_UNAUTHORIZED',
      'BUN_OPTIONS',
      'SSL_CERT_FILE',
      'LD_PRELOAD',
      'PATH',
      'HOME',
      'BASH_ENV',
    ])
      for (const more of [{}, { secrets: ['ANTHROPIC_API_KEY'] }, { secrets: ['DEPLOY_KEY'] }])
        expect(
          () => plan({ task: 'x', agentType: 'claude', env: { [name]: 'http://x' }, ...more }),
          name,
        ).toThrow(`'${name}' in 'env' could send the secrets of the agent 'claude' to another host`)
    const harmless = { CI: '1', NODE_ENV: 'test', ANTHROPIC_MODEL: 'm', ANTHROPIC_DEFAULT_HAIKU_MODEL: 'm' }
    expect(plan({ task: 'x', agentType: 'claude', env: harmless }).env).toMatchObject(harmless)
  })

  it('for claude uses the base URL of the manifest with the token of the manifest', () => {
    const env = { ANTHROPIC_BASE_URL: 'http://gateway.example:8080/v1', ANTHROPIC_AUTH_TOKEN: 'own' }
    const made = plan({ task: 'x', agentType: 'claude', env })
    expect(made.secretNames).toEqual([])
    expect(made.network).toContain('gateway.example:8080')
  })

  it('for claude uses the base URL of the configuration', () => {
    const made = plan({ task: 'x', agentType: 'claude' }, { claudeBaseUrl: 'https://gateway.example' })
    expect(made.env.ANTHROPIC_BASE_URL).toBe('https://gateway.example')
    expect(made.network).toContain('gateway.example')
    expect(made.secretNames).toEqual(['ANTHROPIC_API_KEY'])
  })

  it('for a preset with secrets keeps the configured variables, and rejects redirecting ones', () => {
    const preset = { argv: ['tool'], env: { SERVER: 'a' }, programs: [], format: 'text' as const }
    const of = (secrets: string[], env: object) =>
      plan({ task: 'x', agentType: 'tool', env }, { presets: { tool: { ...preset, secrets } } })
    expect(() => of(['DEPLOY_KEY'], { SERVER: 'b' })).toThrow(/'SERVER' in 'env' could send/)
    expect(() => of(['DEPLOY_KEY'], { OPENAI_BASE_URL: 'b' })).toThrow(/could send/)
    expect(of(['DEPLOY_KEY'], { OTHER: 'b' }).env).toMatchObject({ SERVER: 'a', OTHER: 'b' })
    expect(of([], { SERVER: 'b' }).env).toMatchObject({ SERVER: 'b' })
  })

  it('for a preset fills the template within its arguments and never adds arguments', () => {
    const presets = {
      aider: {
        argv: ['aider', '--message', '{task}', '--model={model}'],
        env: { A: '1' },
        secrets: ['DEPLOY_KEY'],
        programs: [],
        format: 'text' as const,
      },
    }
    const made = plan({ task: HOSTILE, agentType: 'aider', agent: { claudeModel: 'm' } }, { presets })
    expect(made.argv).toEqual(['aider', '--message', HOSTILE, '--model=m'])
    expect(made.secretNames).toEqual(['DEPLOY_KEY'])
    expect(() => plan({ task: 'x', agentType: 'aidr' }, { presets })).toThrow(/did you mean 'aider'/)
  })

  it('is rejected for a secret that is not configured', () => {
    expect(() => plan({ task: 'x', secrets: ['DEPLOY_KEI'] })).toThrow(
      /'DEPLOY_KEI' is not configured, did you mean 'DEPLOY_KEY'/,
    )
  })

  it('has no network unless it is asked for', () => {
    expect(plan({ task: 'x' }).network).toBe('none')
    expect(plan({ task: 'x', network: ['example.org'] }).network).toEqual(['example.org'])
  })
})
