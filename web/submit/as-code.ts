type Manifest = Readonly<Record<string, unknown>>

/** The same submit for other clients, to copy. */
export const asCode = (manifest: Manifest): readonly (readonly [title: string, code: string])[] => {
  const json = JSON.stringify(manifest, null, 2)
  return [
    ['Command line', `deputy submit --manifest - <<'${delimiter(json)}'\n${json}\n${delimiter(json)}`],
    [
      'curl',
      `curl --unix-socket "$(deputy daemon status --json | jq -r .socket)" http://localhost/api/jobs \\\n  -d ${quote(JSON.stringify(manifest))}`,
    ],
    [
      'TypeScript',
      `import { connect } from 'deputy-mcp'\n\nconst deputy = await connect()\nconst job = await deputy.submit(${json})\nconst { status, output } = await job.result()\nawait deputy.close()`,
    ],
  ]
}

/** A line of the text must not end the here-document. */
const delimiter = (text: string): string => {
  let word = 'EOF'
  while (text.split('\n').includes(word)) word += '_'
  return word
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
