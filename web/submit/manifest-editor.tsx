import { useRef } from 'preact/hooks'
import { parse, stringify } from 'yaml'
import { isRecord } from '../../src/jobs/records.ts'
import { Copy } from '../parts.tsx'

export type ManifestDraft = Readonly<Record<string, unknown>>

interface Props {
  readonly manifest: ManifestDraft
  /** The error in the text; undefined when the text is a manifest. */
  readonly problem: string | undefined
  onChange(manifest: ManifestDraft): void
  onProblem(problem: string | undefined): void
}

/** The manifest as YAML, of which JSON is a part. The text stays as it was typed while it means what the form says. */
export const ManifestEditor = ({ manifest, problem, onChange, onProblem }: Props) => {
  const typed = useRef<{ text: string; meaning: string }>({ text: '', meaning: '' })
  const isTyped = problem !== undefined || typed.current.meaning === JSON.stringify(manifest)
  const text = isTyped ? typed.current.text : stringify(manifest, { lineWidth: 0 })
  const take = (next: string): void => {
    const read = readManifest(next)
    typed.current = { text: next, meaning: JSON.stringify(read) }
    onProblem(typeof read === 'string' ? read : undefined)
    if (typeof read !== 'string') onChange(read)
  }
  return (
    <>
      <div class="bar">
        <h2>Manifest</h2>
        <Copy text={text} />
      </div>
      <textarea
        aria-label="Manifest as YAML"
        spellcheck={false}
        rows={24}
        value={text}
        aria-invalid={problem !== undefined}
        onInput={({ currentTarget }) => take(currentTarget.value)}
      />
      {problem !== undefined && <p class="field-problem">{problem}</p>}
    </>
  )
}

/** The object that a text holds, or what is wrong with the text. */
const readManifest = (text: string): ManifestDraft | string => {
  try {
    const value: unknown = parse(text)
    return isRecord(value) ? value : 'A manifest is a mapping, such as: task: echo hello'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
