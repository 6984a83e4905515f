import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGuestListener } from '../../src/guest/listener.ts'
import { GUEST_LIMITS } from '../../src/guest/rate-limiter.ts'
import { hashToken } from '../../src/guest/token-hash.ts'
import type { Outcome, Provider, Run } from '../../src/ports.ts'
import { createGuestSessions } from '../../src/providers/proxmox/guest-sessions.ts'
import { createJobHandler } from '../../src/providers/proxmox/job-handler.ts'
import { createOutputReceiver } from '../../src/providers/proxmox/output-receiver.ts'
import { createSealedOutputState } from '../../src/providers/proxmox/sealed-output-state.ts'
import type { Details } from '../../src/providers/proxmox/vm-details.ts'
import { blobsWithoutStore } from '../../test/support/blobs.ts'
import { startEngine } from '../../test/support/engine.ts'

/**
 * Everything of the product between a machine's report and the disk: listener, sessions, job ports, engine and
 * database. The machines alone are missing: they are whoever holds the tokens. `argv[2]` is the number of jobs;
 * prints port, tokens and ids as one line of JSON, and ends with its standard input.
 */
const directory = mkdtempSync(join(tmpdir(), 'deputy-callbacks-'))
const sessions = createGuestSessions(Date.now)
const blobs = blobsWithoutStore(join(directory, 'blobs'))
const machines: { token: string; job: string }[] = []

const follow = (run: Run): Promise<Outcome> =>
  new Promise(resolve => {
    const token = randomBytes(32).toString('base64url')
    const session = sessions.add(run.machine.id, hashToken(token))
    const startedAt = Date.now()
    const outputState = createSealedOutputState({
      run,
      details: detailsFor(session.tokenHash),
      fresh: run,
      token: () => token,
    })
    const port = createJobHandler({
      run,
      blobs,
      outputReceiver: createOutputReceiver({
        sink: run.sink,
        outputBytes: 0,
        read: outputState.open,
        keep: outputState.keep,
        now: Date.now,
      }),
      files: { files: async () => [], receive: async () => [] },
      collected: () => ({ artifacts: [], skipped: [], patch: null }),
      outlivesJob: false,
      now: Date.now,
      withStart: outputState.sealed,
      onStarted: () => {},
      onRefused: () => {},
      onFinished: ({ report, endedAt }) =>
        resolve({
          kind: 'exit',
          exit: {
            code: report.code,
            signal: null,
            stopped: null,
            startedAt,
            endedAt,
            artifacts: [],
            skippedArtifacts: [],
            patch: null,
            usage: null,
            isolation: [],
            limitsHit: [],
            agentError: null,
            phases: {},
          },
        }),
    })
    run.detach.addEventListener('abort', () => resolve({ kind: 'detached' }))
    sessions.bind(session, { id: run.job.id, port }, undefined)
    void port.started().then(() => machines.push({ token, job: run.job.id }))
  })

const detailsFor = (tokenHash: string): Details => ({
  vmid: 100,
  node: 'pve1',
  template: 9000,
  templateName: 'agent-template',
  cores: 1,
  memory: 512,
  tokenHash,
})

const count = Number(process.argv[2])
const provider: Provider = {
  name: 'proxmox',
  slots: count,
  check: async () => ({ runtime: 'proxmox', ready: true, checks: [] }),
  fits: () => ({ ok: true }),
  create: async () => {},
  start: follow,
  attach: async () => ({ kind: 'detached' }),
  destroy: async machine => sessions.drop(machine.id),
  list: async () => [],
  close: async () => {},
}

const engine = await startEngine([provider], { directory })
const listener = await startGuestListener({
  host: '127.0.0.1',
  port: 0,
  machine: sessions.machine,
  limits: GUEST_LIMITS,
})
await Promise.all(
  Array.from({ length: count }, () => engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'bench')),
)
while (machines.length < count) await new Promise(resolve => setTimeout(resolve, 20))
process.stdout.write(`${JSON.stringify({ port: listener.port, machines })}\n`)

process.stdin.resume().on('end', async () => {
  await listener.close()
  await engine.close()
  rmSync(directory, { recursive: true, force: true })
})
