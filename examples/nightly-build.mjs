// Builds a directory in a sandbox, shows the output as it comes and keeps the artifacts. For cron or a systemd timer:
//   node examples/nightly-build.mjs ~/project 'npm ci && npm run build' 'dist/**' ./nightly
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { connect } from 'deputy-mcp'

const [directory, task, artifacts, target] = process.argv.slice(2)
if (target === undefined) {
  console.error('usage: node examples/nightly-build.mjs DIRECTORY COMMAND ARTIFACTS TARGET')
  process.exit(2)
}

const deputy = await connect()
const job = await deputy.submit({
  task,
  workspace: { path: resolve(directory) },
  artifacts: [artifacts],
  timeout: 3600,
  // A second start on the same day finds the first one.
  idempotency_key: `nightly ${resolve(directory)} ${new Date().toISOString().slice(0, 10)}`,
})
for await (const { stream, text } of job.follow()) process[stream].write(text)
const { status, error, artifacts: files } = await job.result()
for (const { path } of files) {
  const place = resolve(target, path)
  if (!place.startsWith(resolve(target) + sep)) throw new Error(`artifact outside of ${target}: ${path}`)
  await mkdir(dirname(place), { recursive: true })
  await writeFile(place, await job.readArtifact(path))
}
console.error(`${status}${error ? `: ${error.message}` : ''}, ${files.length} artifacts in ${target}`)
await deputy.close()
process.exitCode = status === 'success' ? 0 : 1
