import type { Machine } from '../../src/ports.ts'
import { RUNNER_HOME } from '../../src/providers/microvm/run-in-guest.ts'
import { describeProviderContract, processesWith } from '../integration/providers/provider-contract.ts'
import { testImage } from '../support/microvm.ts'
import type { Harness } from '../support/providers.ts'
import { requireOrSkip } from '../support/require.ts'

const { imagesDir, image, missing } = await testImage()
requireOrSkip(missing)

interface Launched {
  readonly machine: Machine
  readonly job: { readonly id: string }
}

/** Asks the VM, over a session, whether its runner has recorded the end of the command. */
const hasEnded = async ({ provider }: Harness, { machine, job }: Launched): Promise<boolean> => {
  const file = `${RUNNER_HOME}/.cache/deputy/own/jobs/${machine.id}.${job.id}/exit`
  const session = await provider.open!(
    machine,
    { argv: ['cat', file], env: {} },
    new AbortController().signal,
  )
  session.stream.end()
  let said = ''
  for await (const chunk of session.stream) said += chunk
  return (await session.exit) === 0 && said.trim() !== ''
}

const qemuOf = ({ machine }: Pick<Launched, 'machine'>): string[] =>
  processesWith(`deputy-microvm-${machine.id}`)

describeProviderContract('microvm', {
  skip: missing,
  module: 'providers/microvm/microvm-provider.js',
  factory: 'createMicrovmProvider',
  options: { imagesDir, image, graceSeconds: 1, limit: 16 },
  // An emulated processor among busy neighbours.
  patienceSeconds: 240,
  shortTimeout: 15,
  orderGap: 3,
  hasEnded,
  killHolders: (_, launched) => {
    for (const line of qemuOf(launched)) process.kill(Number(line.split(' ')[0]), 'SIGKILL')
  },
  leftovers: () => processesWith('deputy-microvm-'),
})
