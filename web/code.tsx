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
