import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JobResult } from '../../src/engine/deputy.ts'
import { ask, download } from '../api.ts'
import { formatSize } from '../format.ts'
import { Command, Empty, Problem } from '../parts.tsx'
import { type FilePatch, parsePatch } from './patch.ts'

const MAX_BYTES = 2 * 1024 * 1024

/** What a job changed in its workspace. */
export const PatchView = ({ id, result }: { id: string; result: JobResult | undefined }) => {
  const size = result?.patch?.size ?? 0
  if (result === undefined) return <Empty title="Changes come when the job has ended" />
  if (result.patch === null)
    return (
      <Empty title="No changes came back">
        <p>Hand over a directory and ask for its changes:</p>
        <Command text="deputy run --workspace . --apply -- make format" />
      </Empty>
    )
  return (
    <section aria-label="Changes">
      <div class="bar">
        <Command text={`deputy patch --apply . ${id}`} />
        <button
          type="button"
          class="quiet"
          onClick={() => void download(`/api/jobs/${id}/patch`, `${id}.patch`)}
        >
          Download {formatSize(size)}
        </button>
      </div>
      {size > MAX_BYTES ? (
        <p class="soft">Too large to show here: download it.</p>
      ) : size === 0 ? (
        <p class="soft">The job changed nothing.</p>
      ) : (
        <Files id={id} />
      )}
    </section>
  )
}

const Files = ({ id }: { id: string }) => {
  const files = useSignal<readonly FilePatch[]>([])
  const problem = useSignal<unknown>(undefined)
  useEffect(() => {
    const read = async (): Promise<void> => {
      files.value = parsePatch(await (await ask(`/api/jobs/${id}/patch`)).text())
    }
    read().catch(error => {
      problem.value = error
    })
  }, [id])
  return (
    <>
      <Problem error={problem.value} />
      {files.value.map(({ path, added, removed, lines }) => (
        <details class="patch" open key={path}>
          <summary>
            <code>{path}</code> <span class="plus">+{added}</span> <span class="minus">−{removed}</span>
          </summary>
          <pre>
            {lines.map(({ kind, text }, index) => (
              <span class={kind} key={index}>
                {`${text}\n`}
              </span>
            ))}
          </pre>
        </details>
      ))}
    </>
  )
}
