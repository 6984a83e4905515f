import { Component } from 'preact'
import type { Line } from './line-buffer.ts'

interface Props {
  readonly jobId: string
  readonly lines: readonly Line[]
  readonly version: number
  readonly marked: number
  readonly found: ReadonlySet<number>
}

/** A hundred lines. Drawn again only when one of them changed, so that a long log stays cheap. */
export class BlockView extends Component<Props> {
  override shouldComponentUpdate(next: Props): boolean {
    const holds = (props: Props): boolean => props.lines.some(line => line.number === props.marked)
    return (
      next.version !== this.props.version ||
      next.found.size > 0 ||
      this.props.found.size > 0 ||
      (next.marked !== this.props.marked && (holds(next) || holds(this.props)))
    )
  }

  override render({ jobId, lines, marked, found }: Props) {
    return (
      <div class="block">
        {lines.map(line => (
          <div
            key={line.number}
            data-line={line.number}
            class={`line ${line.stream}${line.number === marked ? ' marked' : ''}${found.has(line.number) ? ' found' : ''}`}
          >
            <a class="number" href={`#/jobs/${jobId}?line=${line.number}`} aria-label={`Line ${line.number}`}>
              {line.number}
            </a>
            {line.at !== 0 && <time>{new Date(line.at).toLocaleTimeString()}</time>}
            <span class="text">
              {line.spans.map((span, index) =>
                span.style === '' ? (
                  span.text
                ) : (
                  <span key={index} class={span.style}>
                    {span.text}
                  </span>
                ),
              )}
            </span>
          </div>
        ))}
      </div>
    )
  }
}
