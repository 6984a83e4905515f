import { useSignal } from '@preact/signals'
import type { JobResult } from '../../src/engine/deputy.ts'
import { deputy, saveFile } from '../deputy.ts'
import { formatSize } from '../format.ts'
import { Command, Empty } from '../parts.tsx'
import { Preview } from './preview.tsx'

export const Artifacts = ({ id, result }: { id: string; result: JobResult | undefined }) => {
  const shown = useSignal<string | undefined>(undefined)
  if (result === undefined) return <Empty title="Artifacts appear when the job has ended" />
  if (result.artifacts.length === 0 && result.skipped_artifacts.length === 0)
    return (
      <Empty title="No artifacts">
        <p>Name the files to bring back:</p>
        <Command text="deputy run --artifact 'dist/**' -- make" />
      </Empty>
    )
  return (
    <section aria-label="Artifacts">
      <ul class="files">
        {result.artifacts.map(({ path, size }) => (
          <li key={path}>
            <div class="bar">
              <button
                type="button"
                class="link"
                aria-expanded={shown.value === path}
                onClick={() => {
                  shown.value = shown.value === path ? undefined : path
                }}
              >
                {path}
              </button>
              <span class="soft">{formatSize(size)}</span>
              <button
                type="button"
                class="quiet"
                onClick={() => void saveFile(deputy.openArtifact(id, path), path.split('/').at(-1) ?? path)}
              >
                Download
              </button>
            </div>
            {shown.value === path && <Preview id={id} path={path} size={size} />}
          </li>
        ))}
      </ul>
      {result.skipped_artifacts.map(({ path, reason }) => (
        <p class="soft" key={path}>
          {path} was left out: {reason}
        </p>
      ))}
    </section>
  )
}
