// Gives the same task to several agents, tests each answer, and writes the smallest patch that passes.
//   node examples/best-of-n.mjs 3 'add tests for src/slugify.js' 'npm test' > best.patch
import { connect } from 'deputy-mcp'

const [count = '3', prompt, check = 'npm test'] = process.argv.slice(2)
if (prompt === undefined || !(Number(count) > 0)) {
  console.error('usage: node examples/best-of-n.mjs N PROMPT [CHECK]')
  process.exit(2)
}

const agentType = process.env.AGENT ?? 'claude'
const deputy = await connect()

const attempt = async index => {
  const job = await deputy.submit({
    task: prompt,
    agentType,
    workspace: { path: process.cwd(), patch: true },
    lifecycle: 'persistent',
    lease: 600,
    labels: { attempt: String(index) },
  })
  const { status, error } = await job.result()
  if (status !== 'success') return { index, note: error?.message ?? status }
  const checked = await (await job.exec(check)).result()
  const patch = await job.patch()
  await job.delete()
  return { index, patch, passed: checked.status === 'success', note: `check: ${checked.status}` }
}

const attempts = await Promise.all(Array.from({ length: Number(count) }, (_, index) => attempt(index)))
for (const { index, note } of attempts) console.error(`attempt ${index}: ${note}`)
const [best] = attempts.filter(each => each.passed).sort((a, b) => a.patch.length - b.patch.length)
if (best) process.stdout.write(best.patch)
else process.exitCode = 1
await deputy.close()
