import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { AppError } from '../../src/jobs/errors.ts'
import { deputy } from '../deputy.ts'
import { Copy, Problem } from '../parts.tsx'
import { go, place } from '../router.ts'
import { manifestOf } from '../run-again.ts'
import { useFetch } from '../use-fetch.ts'
import { asCode } from './as-code.ts'
import { FieldInput } from './field-input.tsx'
import { fieldsOf, problemsByField, type Schema } from './fields.ts'
import { FileList } from './file-list.tsx'
import { type ManifestDraft, ManifestEditor } from './manifest-editor.tsx'
import { addFiles, type ManifestFile } from './manifest-files.ts'
import { Templates } from './templates.tsx'

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
const SubmitPage = () => {
  const openApi = useFetch(signal => deputy.openApi(signal) as Promise<OpenApi>)
  const manifest = useSignal<ManifestDraft>({ task: '' })
  const textProblem = useSignal<string | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
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
  const problems = problemsByField(error.value instanceof AppError ? error.value.details : undefined)
  const change = (name: string, value: unknown): void => {
    const { [name]: _, ...rest } = manifest.value
    manifest.value = value === undefined ? rest : { ...manifest.value, [name]: value }
  }
  const files = filesOf(manifest.value)
  const setFiles = (next: readonly ManifestFile[]): void =>
    change('files', next.length === 0 ? undefined : next)
  const add = (chosen: readonly File[]): void => {
    addFiles(files, chosen).then(setFiles, problem => {
      error.value = problem
    })
  }
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    isBusy.value = true
    try {
      const job = await deputy.submit(manifest.value)
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
      .map(field =>
        field.name === 'files' ? (
          <FileList
            key="files"
            files={files}
            problem={problems.get('files')}
            onAdd={add}
            onRemove={path => setFiles(files.filter(file => file.path !== path))}
          />
        ) : (
          <FieldInput
            key={field.name}
            field={field}
            value={manifest.value[field.name]}
            problem={problems.get(field.name)}
            onChange={value => change(field.name, value)}
          />
        ),
      )
  const isElsewhere = !fields.some(({ name }) => problems.has(name))

  return (
    <form
      class="submit"
      onSubmit={event => void submit(event)}
      onDragOver={event => event.preventDefault()}
      onDrop={event => {
        event.preventDefault()
        add([...(event.dataTransfer?.files ?? [])])
      }}
    >
      <div>
        <h1>New job</h1>
        <Templates
          manifest={manifest.value}
          onChoose={chosen => {
            manifest.value = chosen
          }}
        />
        {inputs(true)}
        <details open={fields.some(({ name, isMain }) => !isMain && problems.has(name)) || undefined}>
          <summary>More settings</summary>
          {inputs(false)}
        </details>
        {isElsewhere && <Problem error={error.value} />}
        <div class="bar">
          <button type="submit" class="primary" disabled={isBusy.value || textProblem.value !== undefined}>
            Submit
          </button>
        </div>
      </div>
      <div class="manifest">
        <ManifestEditor
          manifest={manifest.value}
          problem={textProblem.value}
          onChange={next => {
            manifest.value = next
          }}
          onProblem={next => {
            textProblem.value = next
          }}
        />
        <AsCode manifest={manifest.value} />
      </div>
    </form>
  )
}

const AsCode = ({ manifest }: { manifest: ManifestDraft }) => (
  <details class="as-code">
    <summary>Submit with the command line, curl or TypeScript</summary>
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

/** What was typed as text may be anything; the daemon says what is wrong with it. */
const filesOf = ({ files }: ManifestDraft): readonly ManifestFile[] =>
  Array.isArray(files) ? files.filter(file => typeof file?.path === 'string') : []

export default SubmitPage
