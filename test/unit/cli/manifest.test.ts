import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseArgs } from '../../../src/cli/args/parse.ts'
import { MANIFEST_FLAGS } from '../../../src/cli/commands/job-flags.ts'
import { manifestFromInput } from '../../../src/cli/manifest/from-input.ts'
import { isManifestFile } from '../../../src/cli/manifest/read.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'

const manifest = async (...argv: string[]) => {
  const input = parseArgs({
    flags: MANIFEST_FLAGS,
    argv,
    command: 'run',
    stopAt: word => !isManifestFile(word),
  })
  const made = await manifestFromInput(input, { command: 'run', env: { FROM_HERE: 'yes' } })
  // Whatever flags are combined, the daemon must understand the result.
  parseManifest(made)
  return made
}

const directory = mkdtempSync(join(tmpdir(), 'deputy-test-'))
const file = (name: string, content: string | Buffer): string => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

describe('a manifest from the command line', () => {
  it('passes several words on as an argument list, and shows them quoted', async () => {
    expect(await manifest('--', 'printf', '%s\n', "it's", '')).toMatchObject({
      task: "printf '%s\n' 'it'\\''s' ''",
      agent: { command: ['printf', '%s\n', "it's", ''] },
    })
  })

  it('takes a single word with shell syntax for a script', async () => {
    const made = await manifest('--', 'cd /tmp && ls | wc -l')
    expect(made.task).toBe('cd /tmp && ls | wc -l')
    expect(made.agent).toBeUndefined()
  })

  it('takes the words for the prompt of an AI agent', async () => {
    const made = await manifest('--agent', 'claude', '--model', 'sonnet', 'fix', 'the tests')
    expect(made).toMatchObject({
      agentType: 'claude',
      task: 'fix the tests',
      agent: { claudeModel: 'sonnet' },
    })
  })

  it('gathers all flags', async () => {
    const made = await manifest(
      ...[
        '-t',
        '5m',
        '-e',
        'A=1',
        '-e',
        'FROM_HERE',
        '-s',
        'TOKEN',
        '-r',
        'sandbox',
        '--network',
        'a.org, *.b.org',
      ],
      ...[
        '--cpu',
        '0.5',
        '--memory',
        '512M',
        '--disk',
        '1G',
        '--requires',
        'os=linux,arch=arm64,capabilities=a+b',
      ],
      ...[
        '--node',
        'n1',
        '--keep',
        '--lease',
        '1h',
        '-l',
        'k=v',
        '-l',
        'bare',
        '--priority',
        '-5',
        '--retries',
        '0',
      ],
      ...[
        '--artifact',
        'out/**',
        '--artifact',
        '*.log',
        '--key',
        'once',
        '--template',
        'debian',
        '--',
        'true',
      ],
    )
    expect(made).toEqual({
      task: 'true',
      agent: { command: ['true'] },
      timeout: 300,
      env: { A: '1', FROM_HERE: 'yes' },
      secrets: ['TOKEN'],
      runtime: 'sandbox',
      network: ['a.org', '*.b.org'],
      resources: { cpu: 0.5, memory: '512M', disk: '1G' },
      requires: { os: 'linux', arch: 'arm64', capabilities: ['a', 'b'], node: 'n1' },
      lifecycle: 'persistent',
      lease: 3600,
      labels: { k: 'v', bare: '' },
      priority: -5,
      retries: 0,
      artifacts: ['out/**', '*.log'],
      idempotency_key: 'once',
      vmTemplate: 'debian',
    })
  })

  it('puts text files in as text, others as base64, and keeps them executable', async () => {
    const text = file('a.txt', 'grün\n')
    const binary = file('b.bin', Buffer.from([0xff, 0xfe, 0]))
    const made = await manifest('--file', text, '--file', `${binary}:data/b.bin`, '--', 'true')
    expect(made.files).toEqual([
      { path: 'a.txt', text: 'grün\n' },
      { path: 'data/b.bin', content: '//4A' },
    ])
  })

  it('starts from a JSON or YAML file, and lets flags change it', async () => {
    const yaml = file('job.yaml', 'task: make\nenv: {A: x, B: y}\nlabels:\n  team: blue\n')
    const made = await manifest('--env', 'B=z', yaml, '--timeout', '9')
    expect(made).toMatchObject({
      task: 'make',
      env: { A: 'x', B: 'z' },
      labels: { team: 'blue' },
      timeout: 9,
    })
    expect(await manifest('--manifest', file('job.json', '{"task":"true"}'))).toMatchObject({ task: 'true' })
  })

  it('gives every submit a key of its own, so that it can be sent twice', async () => {
    const [one, two] = [await manifest('--', 'true'), await manifest('--', 'true')]
    expect(one.idempotency_key).toMatch(/^cli-/)
    expect(one.idempotency_key).not.toBe(two.idempotency_key)
  })

  it.each([
    [[], 'No command given. Usage: deputy run -- COMMAND'],
    [['--env', 'NOT_SET', '--', 'x'], '--env NOT_SET copies the variable NOT_SET, which is not set'],
    [['--env', '=x', '--', 'x'], "--env needs a name before '=', not '=x'."],
    [
      ['--manifest', '/nowhere/job.json'],
      'The manifest /nowhere/job.json cannot be read: the file does not exist.',
    ],
    [['--file', '/nowhere/x', '--', 'x'], /^--file \/nowhere\/x cannot be read: ENOENT/],
  ])('refuses %j', async (argv, message) => {
    await expect(manifest(...argv)).rejects.toThrow(message)
  })

  it('names what is wrong with a file that is no manifest', async () => {
    await expect(manifest(file('list.json', '[1]'))).rejects.toThrow(/does not contain a manifest/)
    await expect(manifest(file('bad.yaml', 'a: [b'))).rejects.toThrow(/is neither JSON nor YAML/)
  })
})
