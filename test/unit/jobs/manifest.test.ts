import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { type Manifest, parseManifest } from '../../../src/jobs/manifest.ts'
import { fileTarget, pathProblem } from '../../../src/jobs/paths.ts'
import { thrownError } from '../../support/thrown-error.ts'

const refusal = (input: unknown) => thrownError(() => parseManifest(input))

describe('a manifest', () => {
  it('needs no more than a task', () => {
    expect(parseManifest({ task: 'echo hello' })).toMatchObject({
      task: 'echo hello',
      agentType: 'script',
      runtime: 'auto',
      lifecycle: 'ephemeral',
      statusMode: 'simple',
      retries: 2,
      priority: 0,
    })
  })

  it('takes the manifests of the system whose names it keeps', () => {
    const manifest = parseManifest({
      task: 'fix the build',
      agentType: 'claude',
      agent: { claudeModel: 'claude-sonnet-4-5' },
      files: [{ path: 'a/b.txt', content: Buffer.from('hi').toString('base64') }],
      env: { CI: '1' },
      secrets: ['GITHUB_TOKEN'],
      resources: { cpu: 2, memory: '2G', disk: '10G' },
      timeout: 3600,
      lifecycle: 'persistent',
      vmTemplate: 'agent-template',
      statusMode: 'detailed',
    })
    expect(manifest.agent?.claudeModel).toBe('claude-sonnet-4-5')
  })

  it.each([
    [{ task: 'x', agent_type: 'claude' }, "unknown key 'agent_type', did you mean 'agentType'?"],
    [{ task: 'x', timeot: 5 }, "unknown key 'timeot', did you mean 'timeout'?"],
    [{ task: 'x', resources: { mem: '2G' } }, "unknown key 'resources.mem'"],
    [
      { task: 'x', resources: { memory: '2 GB' } },
      `'resources.memory' is not a size such as '512M' or '2G' (got "2 GB")`,
    ],
    [{ task: '' }, "'task'"],
    [{}, "'task' is required"],
    [{ task: 'x', timeout: 0 }, "'timeout'"],
    [{ task: 'x', timeout: 86_401 }, "'timeout'"],
    [{ task: 'x', agentType: 'custom' }, "'agent.command' is required"],
    [{ task: 'x', env: { '1BAD': 'x' } }, 'environment variable'],
    [{ task: 'x', env: { A: '1' }, secrets: ['A'] }, "'A' is both in 'env' and in 'secrets'"],
    [{ task: 'x', files: [{ path: '../x', text: '' }] }, "'files.0.path' contains '..'"],
    [{ task: 'x', files: [{ path: '/etc/passwd', text: '' }] }, 'neither below /work nor below /tmp'],
    [
      { task: 'x', files: [{ path: 'a', text: 'x', content: 'eA==' }] },
      "exactly one of 'text' and 'content'",
    ],
    [{ task: 'x', files: [{ path: 'a', content: '§' }] }, 'is not base64'],
    [{ task: 'x', network: ['http://example.org'] }, 'network'],
    [{ task: 'x', lease: 600 }, "'lease' needs 'lifecycle'"],
    [{ task: 'a\0b' }, 'NUL'],
    ['nonsense', 'the manifest is "nonsense", not an object'],
    [null, 'the manifest is null'],
    [[{ task: 'x' }], 'the manifest is a list'],
  ])('refuses %j and says why', (input, words) => {
    const error = refusal(input)
    expect(error.code).toBe('invalid')
    expect(error.message).toContain(words)
    expect(error.hint).toBeTruthy()
  })

  it('never repeats a large value in an error', () => {
    const error = refusal({ task: 'x', resources: { memory: 'x'.repeat(100_000) } })
    expect(error.message.length).toBeLessThan(500)
  })

  it('survives anything: it is refused with our error or it is sound', () => {
    const json = fc.jsonValue()
    const nearly = fc.record(
      {
        task: fc.oneof(fc.string(), json),
        agentType: fc.oneof(fc.constantFrom('script', 'claude', 'custom'), json),
        agent: fc.oneof(fc.record({ command: fc.oneof(fc.string(), fc.array(fc.string()), json) }), json),
        files: fc.oneof(
          fc.array(fc.record({ path: fc.oneof(fc.string(), hostilePath()), text: fc.string() }), {
            maxLength: 5,
          }),
          json,
        ),
        env: fc.oneof(fc.dictionary(fc.string(), fc.string()), json),
        secrets: fc.oneof(fc.array(fc.string()), json),
        artifacts: fc.oneof(fc.array(fc.string()), json),
        network: json,
        timeout: json,
        labels: fc.oneof(fc.dictionary(fc.string(), fc.string()), json),
        ['__proto__']: json,
      },
      { requiredKeys: ['task'] },
    )
    fc.assert(
      fc.property(fc.oneof(json, nearly), input => {
        let manifest: Manifest
        try {
          manifest = parseManifest(input)
        } catch (error) {
          expect(error).toBeInstanceOf(AppError)
          expect((error as AppError).code).toBe('invalid')
          return
        }
        for (const { path } of manifest.files ?? []) expectInside(path)
        for (const name of Object.keys(manifest.env ?? {})) expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_]*$/)
      }),
      { numRuns: 10_000 },
    )
  })
})

const hostilePath = () =>
  fc
    .array(
      fc.constantFrom(
        '..',
        '.',
        '',
        'a',
        'work',
        'tmp',
        'etc',
        '~',
        '\0',
        'x y',
        '-rf',
        '$(id)',
        '`id`',
        '\n',
      ),
      { maxLength: 6 },
    )
    .map(parts => parts.join('/'))

const expectInside = (path: string): void => {
  const { root, relative } = fileTarget(path)
  expect(['workspace', 'tmp']).toContain(root)
  expect(relative).not.toBe('')
  expect(relative.startsWith('/')).toBe(false)
  expect(relative.split('/')).not.toContain('..')
  expect(relative).not.toContain('\0')
}

describe('a path of a file', () => {
  it('stays below the workspace or /tmp, whatever is tried', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          hostilePath(),
          hostilePath().map(path => `/work/${path}`),
          hostilePath().map(path => `/tmp/${path}`),
        ),
        path => {
          if (pathProblem(path) === undefined) expectInside(path)
        },
      ),
      { numRuns: 5000 },
    )
  })

  it.each([
    ['a.txt', 'workspace', 'a.txt'],
    ['./a//b.txt', 'workspace', 'a/b.txt'],
    ['/work/src/main.c', 'workspace', 'src/main.c'],
    ['/tmp/x', 'tmp', 'x'],
    ['/work/./x', 'workspace', 'x'],
  ])('%s lands in the %s at %s', (path, root, relative) => {
    expect(pathProblem(path)).toBeUndefined()
    expect(fileTarget(path)).toEqual({ root, relative })
  })

  it.each(['', '/', '/work', '/work/', '/tmp', 'a/', 'a/..', '/workx/y', '/tmpx/y', 'a/.', '//etc/passwd'])(
    '%j is refused',
    path => {
      expect(pathProblem(path)).toBeTypeOf('string')
    },
  )
})
