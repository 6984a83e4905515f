import { createReadStream, statSync } from 'node:fs'
import { isGzip } from '../../files/is-gzip.ts'
import { AppError } from '../../jobs/errors.ts'
import type { LocalMachine } from './local-machine.ts'
import type { RunSpec } from './run-spec.ts'
import { unpackScript } from './runner-script.ts'

/** Sends a tar into the machine, which unpacks it. The tar is not parsed outside the machine. */
export const unpackInput = async (machine: LocalMachine, input: RunSpec['inputs'][number]): Promise<void> => {
  const size = statSync(input.path).size
  if (size === 0) return
  const directory = input.into === 'workspace' ? machine.plan.directory : machine.plan.filesRoot
  let tarErrors = ''
  const onText = (chunk: Buffer) => {
    if (tarErrors.length < 2000) tarErrors += chunk.toString('utf8')
  }
  machine.dataOut.on('data', onText)
  const finished = new Promise<string>(resolve => {
    const off = machine.onStatus(line => {
      if (!line.startsWith('unpacked ')) return
      off()
      resolve(line.slice(9))
    })
  })
  machine.send(unpackScript(directory, size, isGzip(input.path)))
  const source = createReadStream(input.path)
  source.pipe(machine.dataIn, { end: false })
  const code = await Promise.race([finished, machine.gone.then(() => 'gone')])
  machine.dataOut.off('data', onText)
  machine.dataOut.pause()
  if (code === '0') return
  source.destroy()
  const detail = tarErrors.trim().split('\n')[0] ?? ''
  throw new AppError(
    'invalid',
    tarErrors.includes('No space left')
      ? `The inputs of the job (${size} bytes) do not fit into its disk.`
      : `The inputs of the job cannot be unpacked: ${detail || `tar ended with ${code}`}.`,
    { hint: "Ask for more in 'resources.disk', or send a plain or gzipped tar." },
  )
}
