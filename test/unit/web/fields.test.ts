import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AppError } from '../../../src/jobs/errors.ts'
import { manifestSchema, parseManifest } from '../../../src/jobs/manifest.ts'
import { fieldsOf, problemsByField, type Schema, toText, toValue } from '../../../web/submit/fields.ts'

const schema = z.toJSONSchema(manifestSchema, { io: 'input', unrepresentable: 'any' }) as Schema

describe('the form of a manifest', () => {
  it('has a field for each property that a browser can fill, the task first', () => {
    const fields = fieldsOf(schema)
    expect(fields[0]).toMatchObject({ name: 'task', kind: 'text', isMain: true })
    expect(fields.map(field => field.name).sort()).toEqual(
      Object.keys(manifestSchema.shape)
        .filter(name => name !== 'workspace' && name !== 'idempotency_key')
        .sort(),
    )
    const kinds = Object.fromEntries(fields.map(({ name, kind }) => [name, kind]))
    expect(kinds).toMatchObject({
      timeout: 'number',
      env: 'map',
      artifacts: 'list',
      lifecycle: 'choice',
      retryStarted: 'boolean',
      network: 'json',
      resources: 'json',
    })
  })

  it.each([
    ['list', 'a\nb', ['a', 'b']],
    ['map', 'A=1\nB=x=y', { A: '1', B: 'x=y' }],
    ['number', '1.5', 1.5],
    ['json', '{"cpu":2}', { cpu: 2 }],
    ['json', 'full', 'full'],
    ['boolean', 'true', true],
    ['text', '', undefined],
  ] as const)('reads a %s and writes it again', (kind, text, value) => {
    expect(toValue(kind, text)).toEqual(value)
    expect(toText(kind, value)).toBe(text)
  })

  it('sends what it cannot read to the daemon, which says what is wrong at the field', () => {
    const manifest = { task: 'x', timeout: toValue('number', 'soon'), retrys: 1 }
    try {
      parseManifest(manifest)
      expect.unreachable()
    } catch (error) {
      const problems = problemsByField(error instanceof AppError ? error.details : undefined)
      expect(problems.get('timeout')).toContain('"soon"')
      expect(problems.get('retrys')).toContain("did you mean 'retries'")
    }
  })
})
