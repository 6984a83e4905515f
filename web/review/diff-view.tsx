import { Code } from '../code.tsx'
import { type Language, languageOf } from '../syntax.ts'
import { type FilePatch, type PatchLine, pairLines } from './patch.ts'

export type Layout = 'inline' | 'split'

/** The changed lines of one file. */
export const DiffView = ({ file, layout }: { file: FilePatch; layout: Layout }) => {
  const language = languageOf(file.path)
  return (
    <table class={`diff ${layout}`}>
      <colgroup>
        <col class="nr" />
        {layout === 'split' ? <col /> : <col class="nr" />}
        {layout === 'split' && <col class="nr" />}
        <col />
      </colgroup>
      <tbody>{layout === 'split' ? splitRows(file, language) : inlineRows(file, language)}</tbody>
    </table>
  )
}

const MARKS: Readonly<Record<PatchLine['kind'], string>> = {
  added: '+',
  removed: '-',
  same: ' ',
  hunk: '',
  note: '',
}

const inlineRows = ({ lines }: FilePatch, language: Language) =>
  lines.map((line, index) => (
    <tr class={line.kind} key={index}>
      <td class="nr">{line.before}</td>
      <td class="nr">{line.after}</td>
      <Text line={line} language={language} />
    </tr>
  ))

const splitRows = ({ lines }: FilePatch, language: Language) =>
  pairLines(lines).map(({ left, right }, index) => {
    const whole = left?.kind === 'hunk' || left?.kind === 'note' ? left : undefined
    if (whole !== undefined)
      return (
        <tr class={whole.kind} key={index}>
          <td class="nr" />
          <td class="text" colSpan={3}>
            {whole.text}
          </td>
        </tr>
      )
    return (
      <tr key={index}>
        <td class={`nr ${left?.kind ?? 'absent'}`}>{left?.before}</td>
        <Text line={left} language={language} />
        <td class={`nr ${right?.kind ?? 'absent'}`}>{right?.after}</td>
        <Text line={right} language={language} />
      </tr>
    )
  })

const Text = ({ line, language }: { line: PatchLine | undefined; language: Language }) => {
  if (line === undefined) return <td class="text absent" />
  const isCode = line.kind !== 'hunk' && line.kind !== 'note'
  return (
    <td class={`text ${line.kind}`}>
      {isCode && <span class="mark">{MARKS[line.kind]}</span>}
      <Code line={line.text} language={isCode ? language : 'plain'} />
    </td>
  )
}
