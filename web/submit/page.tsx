import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JobView } from '../../src/engine/deputy.ts'
import { isRecord } from '../../src/jobs/records.ts'
import { ApiError, askJson } from '../api.ts'
import { Copy, Problem } from '../parts.tsx'
import { go, place } from '../router.ts'
import { manifestOf } from '../run-again.ts'
import { useFetch } from '../use-fetch.ts'
import { asCode } from './as-code.ts'
import { FieldInput } from './field-input.tsx'
import { fieldsOf, problemsByField, type Schema } from './fields.ts'

interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      {
        readonly post: {
          readonly requestBody: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
        }
      }
    >
  >
}

/** A form made from the manifest's schema, and the manifest beside it; either can be edited. */
export const SubmitPage = () => {
  const openApi = useFetch<OpenApi>('/openapi.json')
  const manifest = useSignal<Readonly<Record<string, unknown>>>({ task: '' })
  const jsonProblem = useSignal<string | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const json = useComputed(() => JSON.stringify(manifest.value, null, 2))
  const from = place.value.query.get('from')
  useEffect(() => {
    if (from === null) return
    manifestOf(from).then(
      found => {
        manifest.value = found
      },
      problem => {
        error.value = problem
      },
    )
  }, [from])

  const schema = openApi.data.value?.paths['/api/jobs']?.post.requestBody.content['application/json']?.schema
  if (schema === undefined) return <Problem error={openApi.problem.value} />
  const fields = fieldsOf(schema)
  const problems = problemsByField(error.value instanceof ApiError ? error.value.details : undefined)
  const change = (name: string, value: unknown): void => {
    const { [name]: _, ...rest } = manifest.value
    manifest.value = value === undefined ? rest : { ...manifest.value, [name]: value }
  }
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    isBusy.value = true
    try {
      const job = await askJson<JobView>('/api/jobs', { method: 'POST', body: manifest.value })
      go(`#/jobs/${job.job_id}`)
    } catch (thrown) {
      error.value = thrown
    } finally {
      isBusy.value = false
    }
  }
  const inputs = (isMain: boolean) =>
    fields
      .filter(field => field.isMain === isMain)
      .map(field => (
        <FieldInput
          key={field.name}
          field={field}
          value={manifest.value[field.name]}
          problem={problems.get(field.name)}
          onChange={value => change(field.name, value)}
        />
      ))
  const isElsewhere = !fields.some(({ name }) => problems.has(name))

  return (
    <form class="submit" onSubmit={event => void submit(event)}>
      <div>
        <h1>New job</h1>
        {inputs(true)}
        <details open={fields.some(({ name, isMain }) => !isMain && problems.has(name)) || undefined}>
          <summary>More settings</summary>
          {inputs(false)}
        </details>
        {isElsewhere && <Problem error={error.value} />}
        <div class="bar">
          <button type="submit" class="primary" disabled={isBusy.value || jsonProblem.value !== undefined}>
            Submit
          </button>
        </div>
      </div>
      <div class="manifest">
        <div class="bar">
          <h2>Manifest</h2>
          <Copy text={json.value} />
        </div>
        <textarea
          aria-label="Manifest as JSON"
          spellcheck={false}
          rows={24}
          value={json.value}
          aria-invalid={jsonProblem.value !== undefined}
          onInput={({ currentTarget }) => {
            const read = readObject(currentTarget.value)
            jsonProblem.value = typeof read === 'string' ? read : undefined
            if (typeof read !== 'string') manifest.value = read
          }}
        />
        {jsonProblem.value !== undefined && <p class="field-problem">{jsonProblem.value}</p>}
        <AsCode manifest={manifest.value} />
      </div>
    </form>
  )
}

const AsCode = ({ manifest }: { manifest: Readonly<Record<string, unknown>> }) => (
  <details class="as-code">
    <summary>Submit it from elsewhere</summary>
    {asCode(manifest).map(([title, code]) => (
      <div key={title}>
        <div class="bar">
          <h3>{title}</h3>
          <Copy text={code} />
        </div>
        <pre class="code">{code}</pre>
      </div>
    ))}
  </details>
)

/** The object that a text holds, or what is wrong with the text. */
const readObject = (text: string): Record<string, unknown> | string => {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : 'A manifest is an object.'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
