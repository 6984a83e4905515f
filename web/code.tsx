import { Fragment } from 'preact'
import { type Language, tokens } from './syntax.ts'

export const Code = ({ line, language }: { line: string; language: Language }) => (
  <>
    {tokens(line, language).map(({ kind, text }, index) =>
      kind === undefined ? (
        text
      ) : (
        <span class={`tok-${kind}`} key={index}>
          {text}
        </span>
      ),
    )}
  </>
)

/** Text of several lines with colours. */
export const Source = ({ text, language }: { text: string; language: Language }) => (
  <pre class="code">
    {text.split('\n').map((line, index) => (
      <Fragment key={index}>
        <Code line={line} language={language} />
        {'\n'}
      </Fragment>
    ))}
  </pre>
)
