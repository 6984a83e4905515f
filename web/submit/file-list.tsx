import { formatSize } from '../format.ts'
import type { ManifestFile } from './manifest-files.ts'

interface Props {
  readonly files: readonly ManifestFile[]
  readonly problem: string | undefined
  onAdd(files: readonly File[]): void
  onRemove(path: string): void
}

/** The files of a job. They can also be dropped on the page. */
export const FileList = ({ files, problem, onAdd, onRemove }: Props) => (
  <div class="field">
    <label for="field-files">files</label>
    {files.length > 0 && (
      <ul class="files">
        {files.map(({ path, text, content }) => (
          <li key={path}>
            <code>{path}</code>
            <span class="soft">
              {formatSize(text?.length ?? Math.floor(((content?.length ?? 0) * 3) / 4))}
            </span>
            <button type="button" class="quiet" aria-label={`Remove ${path}`} onClick={() => onRemove(path)}>
              ×
            </button>
          </li>
        ))}
      </ul>
    )}
    <input
      id="field-files"
      type="file"
      multiple
      aria-describedby="help-files"
      onChange={({ currentTarget }) => {
        onAdd([...(currentTarget.files ?? [])])
        currentTarget.value = ''
      }}
    />
    <p id="help-files" class={problem === undefined ? 'soft' : 'field-problem'}>
      {problem ?? 'To put into the workspace. Choose them, or drop them anywhere on this page'}
    </p>
  </div>
)
