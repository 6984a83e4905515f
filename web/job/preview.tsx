import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { deputy, readBytes } from '../deputy.ts'
import { Problem } from '../parts.tsx'

const MAX_BYTES = 2 * 1024 * 1024

const IMAGES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  svg: 'image/svg+xml',
}

type Content =
  | { readonly kind: 'image'; readonly url: string }
  | { readonly kind: 'html'; readonly url: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary' }

/** A file that a job left. Nobody vouches for it: text stays text, and HTML gets a frame without any rights. */
export const Preview = ({ id, path, size }: { id: string; path: string; size: number }) => {
  const content = useSignal<Content | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  useEffect(() => {
    if (size > MAX_BYTES) return
    const stop = new AbortController()
    read(id, path, stop.signal).then(
      value => {
        content.value = value
      },
      error => {
        if (!stop.signal.aborted) problem.value = error
      },
    )
    return () => {
      stop.abort()
      const { value } = content
      if (value !== undefined && 'url' in value) URL.revokeObjectURL(value.url)
    }
  }, [id, path])

  if (size > MAX_BYTES) return <p class="soft">Too large to show here: download it.</p>
  const { value } = content
  if (value === undefined) return <Problem error={problem.value} />
  if (value.kind === 'image') return <img class="preview" src={value.url} alt={path} />
  if (value.kind === 'html')
    return (
      <>
        <p class="soft">Scripts, styles and pictures of this page are off.</p>
        <iframe class="preview" sandbox="" src={value.url} title={path} />
      </>
    )
  if (value.kind === 'binary') return <p class="soft">Not text: download it.</p>
  return <pre class="code">{value.text}</pre>
}

const read = async (id: string, path: string, signal: AbortSignal): Promise<Content> => {
  const bytes = await (await readBytes(await deputy.openArtifact(id, path, signal))).arrayBuffer()
  const extension = path.split('.').at(-1)?.toLowerCase() ?? ''
  const image = IMAGES[extension]
  if (image !== undefined) return { kind: 'image', url: urlOf(bytes, image) }
  if (extension === 'html' || extension === 'htm')
    return { kind: 'html', url: urlOf(bytes, 'text/html;charset=utf-8') }
  const text = new TextDecoder().decode(bytes)
  if (text.includes('\0')) return { kind: 'binary' }
  return { kind: 'text', text: extension === 'json' ? indented(text) : text }
}

const urlOf = (bytes: ArrayBuffer, type: string): string => URL.createObjectURL(new Blob([bytes], { type }))

const indented = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
