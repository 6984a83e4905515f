import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { asCode } from '../../../web/submit/as-code.ts'

const MANIFEST = { task: `echo "it's $HOME \`id\`"\nEOF\n`, env: { A: "'; id; '" } }

/** Runs the command in a shell in which the program is a function that shows what it was given. */
const given = (code: string, body: string): unknown =>
  JSON.parse(
    execFileSync(
      'sh',
      ['-c', `deputy() { ${body}; }\ncurl() { for a; do :; done; printf %s "$a"; }\n${code}`],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    ).toString(),
  )

it('gives commands that a shell passes on as they are', () => {
  const [[, cli], [, curl], [, typescript]] = asCode(MANIFEST) as [
    [string, string],
    [string, string],
    [string, string],
  ]
  expect(given(cli, 'cat')).toEqual(MANIFEST)
  expect(given(curl, 'echo {}')).toEqual(MANIFEST)
  expect(JSON.parse(/submit\(([\s\S]*?)\)\nconst/.exec(typescript)![1]!)).toEqual(MANIFEST)
})
