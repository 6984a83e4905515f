import { useSignal } from '@preact/signals'
import type { JobView } from '../../src/engine/deputy.ts'
import { Command } from '../parts.tsx'

/** How to look at a server in a running job: a browser cannot listen, so a command brings the port. */
export const PortForward = ({ job }: { job: JobView }) => {
  const port = useSignal('8000')
  if (job.status !== 'running' || job.machine_id === null || job.runtime === 'proxmox') return null
  const number = Number(port.value)
  const isValid = Number.isInteger(number) && number >= 1 && number <= 65_535
  const address = `http://127.0.0.1:${number}/`
  return (
    <details class="forward">
      <summary>Look at a port</summary>
      <label class="field">
        Port in the machine
        <input
          type="number"
          min="1"
          max="65535"
          value={port.value}
          onInput={({ currentTarget }) => {
            port.value = currentTarget.value
          }}
        />
      </label>
      {isValid && (
        <>
          <Command text={`deputy forward ${job.job_id} ${number}`} />
          <p class="soft">
            While it runs: <a href={address} target="_blank" rel="noreferrer">{`127.0.0.1:${number}`}</a>
          </p>
        </>
      )}
    </details>
  )
}
