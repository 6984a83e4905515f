import type { FilePatch } from './patch.ts'

interface Props {
  readonly files: readonly FilePatch[]
  readonly viewed: ReadonlySet<string>
  readonly active: number
  onOpen(index: number): void
}

interface Group {
  readonly directory: string
  readonly entries: readonly { readonly file: FilePatch; readonly index: number }[]
}

/** The changed files by directory. */
export const FileTree = ({ files, viewed, active, onOpen }: Props) => (
  <nav class="file-tree" aria-label="Changed files">
    {groupsOf(files).map(({ directory, entries }) => (
      <div key={directory}>
        {directory !== '' && <p class="soft">{directory}/</p>}
        {entries.map(({ file, index }) => (
          <button
            type="button"
            key={file.path}
            class={viewed.has(file.path) ? 'quiet viewed' : 'quiet'}
            aria-current={index === active ? 'true' : undefined}
            onClick={() => onOpen(index)}
          >
            <span class="name">{file.path.slice(directory === '' ? 0 : directory.length + 1)}</span>
            <span class="plus">+{file.added}</span>
            <span class="minus">−{file.removed}</span>
          </button>
        ))}
      </div>
    ))}
  </nav>
)

const groupsOf = (files: readonly FilePatch[]): Group[] => {
  const groups = new Map<string, { file: FilePatch; index: number }[]>()
  files.forEach((file, index) => {
    const directory = file.path.includes('/') ? file.path.slice(0, file.path.lastIndexOf('/')) : ''
    const entries = groups.get(directory) ?? []
    groups.set(directory, [...entries, { file, index }])
  })
  return [...groups].map(([directory, entries]) => ({ directory, entries }))
}
