import { useSignal } from '@preact/signals'
import { deputy } from '../deputy.ts'
import { Confirm, Problem, type Question } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'
import type { ManifestDraft } from './manifest-editor.tsx'

interface Props {
  readonly manifest: ManifestDraft
  onChoose(manifest: ManifestDraft): void
}

/** Manifests that were saved by name. */
export const Templates = ({ manifest, onChoose }: Props) => {
  const { data, problem: loading, reload } = useFetch(deputy.templates)
  const name = useSignal('')
  const problem = useSignal<unknown>(undefined)
  const question = useSignal<Question | undefined>(undefined)
  const templates = data.value ?? []
  const act = async (change: Promise<void>): Promise<void> => {
    try {
      await change
      problem.value = undefined
      name.value = ''
      await reload()
    } catch (error) {
      problem.value = error
    }
  }
  const save = (): void => {
    const which = name.value.trim()
    const isTaken = templates.some(template => template.name === which)
    if (!isTaken) return void act(deputy.saveTemplate(which, manifest))
    question.value = {
      text: `Replace the template ${which}?`,
      action: 'Replace',
      run: () => act(deputy.saveTemplate(which, manifest)),
    }
  }
  return (
    <details class="templates">
      <summary>Templates{templates.length > 0 && ` (${templates.length})`}</summary>
      <ul>
        {templates.map(({ name: which, manifest: saved, problem: why }) => (
          <li key={which}>
            <button type="button" class="link" disabled={!saved} onClick={() => saved && onChoose(saved)}>
              {which}
            </button>
            {why !== undefined && <span class="field-problem">{why}</span>}
            <button
              type="button"
              class="quiet"
              aria-label={`Delete ${which}`}
              onClick={() => {
                question.value = {
                  text: `Delete the template ${which}?`,
                  action: 'Delete',
                  run: () => act(deputy.deleteTemplate(which)),
                }
              }}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <div class="bar">
        <input
          type="text"
          aria-label="Name of the template"
          placeholder="nightly-build"
          value={name.value}
          onInput={({ currentTarget }) => {
            name.value = currentTarget.value
          }}
        />
        <button type="button" disabled={name.value.trim() === ''} onClick={save}>
          Save as template
        </button>
      </div>
      <Problem error={problem.value ?? loading.value} />
      <Confirm question={question} />
    </details>
  )
}
