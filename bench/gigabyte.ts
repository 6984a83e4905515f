import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchDaemon } from './daemon.ts'
import type { Figure } from './figure.ts'

/** A gigabyte through one job: the daemon must not notice, and both ends must arrive. */
export const gigabyteOfOutput = async (
  { client, memory }: BenchDaemon,
  { name = '1 GB of output', ...manifest }: { name?: string; image?: string } = {},
): Promise<Figure[]> => {
  const before = memory()
  let highest = before
  const { job_id } = await client.submit({
    task: 'echo BEGIN; head -c 1073741824 /dev/zero | tr "\\0" x; echo; echo END',
    timeout: 600,
    ...manifest,
  })
  const began = performance.now()
  for (;;) {
    highest = Math.max(highest, memory())
    const view = await client.get(job_id)
    if (view.completed_at !== null) break
    await sleep(20)
  }
  const seconds = (performance.now() - began) / 1000
  const result = await client.result(job_id, { maxBytes: 4096 })
  if (!result.output.startsWith('BEGIN') || !result.output.endsWith('END\n'))
    throw new Error('an end of the output is missing')
  if (result.output_bytes !== 1_073_741_824 + 11) throw new Error(`${result.output_bytes} bytes were counted`)
  return [
    {
      name: `${name}: growth of the daemon`,
      value: (highest - before) / 2 ** 20,
      unit: 'MB',
      target: { of: 'value', at: 'most', limit: 32 },
    },
    { name: `${name}: throughput`, value: 1024 / seconds, unit: 'MB/s' },
  ]
}
