import { createReadStream, statSync } from 'node:fs'
import { AppError } from '../../jobs/errors.ts'
import { isGzip } from './is-gzip.ts'
import type { Box } from './local-machine.ts'
import { unpackText } from './runner-script.ts'
import type { StartSpec } from './shim-protocol.ts'

/** Sends one tar into a machine and has it unpacked there. Nothing of it is opened outside. */
export const unpack = async (box: Box, input: StartSpec['inputs'][number]): Promise<void> => {
  const size = statSync(input.path).size
  if (size === 0) return
  const directory = input.into === 'workspace' ? box.plan.directory : box.plan.filesRoot
  let complaint = ''
  const onText = (chunk: Buffer) => {
    if (complaint.length < 2000) complaint += chunk.toString('utf8')
  }
  box.dataOut.on('data', onText)
  const finished = new Promise<string>(resolve => {
    const off = box.onStatus(line => {
      if (!line.startsWith('unpacked ')) return
      off()
      resolve(line.slice(9))
    })
  })
  box.send(unpackText(directory, size, isGzip(input.path)))
  const source = createReadStream(input.path)
  source.pipe(box.dataIn, { end: false })
  const code = await Promise.race([finished, box.gone.then(() => 'gone')])
  box.dataOut.off('data', onText)
  box.dataOut.pause()
  if (code === '0') return
  source.destroy()
  const detail = complaint.trim().split('\n')[0] ?? ''
  throw new AppError(
    'invalid',
    complaint.includes('No space left')
      ? `The inputs of the job (${size} bytes) do not fit into its disk.`
      : `The inputs of the job cannot be unpacked: ${detail || `tar ended with ${code}`}.`,
    { hint: "Ask for more in 'resources.disk', or send a plain or gzipped tar." },
  )
}
