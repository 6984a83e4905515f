// Runs one command on each file, each in a sandbox of its own, and prints what it said.
//   node examples/map-files.mjs 'wc -l < input' README.md package.json
import { readFile } from 'node:fs/promises'
import { connect } from 'deputy-mcp'

const [command, ...paths] = process.argv.slice(2)
if (command === undefined || paths.length === 0) {
  console.error('usage: node examples/map-files.mjs COMMAND FILE…   (the file is called input)')
  process.exit(2)
}

const deputy = await connect()
const results = await Promise.all(
  paths.map(async path => {
    const content = (await readFile(path)).toString('base64')
    return deputy.run({ task: command, files: [{ path: 'input', content }], labels: { file: path } })
  }),
)
for (const [index, result] of results.entries())
  process.stdout.write(`${paths[index]}\t${result.status}\t${result.output.trim()}\n`)
await deputy.close()
process.exitCode = results.every(result => result.status === 'success') ? 0 : 1
