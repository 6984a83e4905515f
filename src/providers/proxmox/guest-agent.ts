import { AppError } from '../../jobs/errors.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { isOutage } from './retry-through-outage.ts'
import type { VmRef } from './vm-ref.ts'

export interface AgentLink {
  /** False while no agent answers. */
  isUp(signal: AbortSignal): Promise<boolean>
  /** Waits for the end of a command; the agent keeps its output until then. */
  exec(argv: readonly string[], signal: AbortSignal): Promise<{ code: number; out: Buffer; err: Buffer }>
  writeFile(file: string, content: Buffer, signal: AbortSignal): Promise<void>
}

/** 61 440 characters of base64. */
const MAX_PART = 46_080

/** A client for the QEMU guest agent of a VM that works around its limits. */
export const createAgentLink = (proxmox: Proxmox, at: VmRef): AgentLink => {
  // Evaluated for each call: the VM may be migrated to another node.
  const base = () => path`/nodes/${at.node}/qemu/${at.vmid}/agent`

  /** Encodes base64 here: the encoding in Proxmox VE fails on characters beyond Latin-1. */
  const put = (file: string, content: Buffer, signal: AbortSignal) =>
    proxmox.post(
      `${base()}/file-write`,
      { file: ascii(file), content: content.toString('base64'), encode: false },
      { signal },
    )

  const exec: AgentLink['exec'] = async (argv, signal) => {
    const { pid } = await proxmox.post<{ pid: number }>(
      `${base()}/exec`,
      { command: argv.map(ascii) },
      { signal },
    )
    for (let pause = 40; ; pause = Math.min(1000, pause * 1.5)) {
      await proxmox.clock.sleep(pause, signal)
      // The agent returns the result only once. If the response is lost, fail; the caller repeats the command.
      const status = await proxmox.request<Record<string, unknown>>(
        'GET',
        `${base()}/exec-status`,
        { pid },
        { signal, once: true },
      )
      if (Number(status.exited ?? 0) !== 1) continue
      const code = status.signal === undefined ? Number(status.exitcode ?? 0) : 128 + Number(status.signal)
      return { code, out: bytes(status['out-data']), err: bytes(status['err-data']) }
    }
  }

  return {
    exec,
    isUp: async signal => {
      try {
        await proxmox.post(`${base()}/ping`, {}, { signal })
        return true
      } catch (error) {
        const kind = proxmoxDetails(error)?.kind
        if (kind === 'agent_down' || kind === 'stopped' || kind === 'uncertain' || isOutage(error))
          return false
        throw error
      }
    },
    writeFile: async (file, content, signal) => {
      if (content.length <= MAX_PART) {
        await put(file, content, signal)
        return
      }
      const parts = Math.ceil(content.length / MAX_PART)
      for (let part = 0; part < parts; part++) {
        await put(`${file}.${part}`, content.subarray(part * MAX_PART, (part + 1) * MAX_PART), signal)
      }
      const join =
        'f=$1 n=$2 i=0; : >"$f"; while [ $i -lt $n ]; do cat "$f.$i" >>"$f" && rm "$f.$i" || exit 1; i=$((i+1)); done'
      const { code, err } = await exec(['/bin/sh', '-c', join, 'sh', file, String(parts)], signal)
      if (code !== 0)
        throw new AppError(
          'unavailable',
          `A file could not be written into VM ${at.vmid}: ${err.toString('utf8').trim()}`,
        )
    },
  }
}

/** A character beyond Latin-1 makes the agent stop answering until the guest is reset. */
const ascii = (text: string): string => {
  if (/^[\t\n\x20-\x7e]*$/.test(text)) return text
  throw new AppError('internal', 'A command for the guest agent holds characters beyond ASCII.')
}

/** The agent returns each byte as a Latin-1 character. */
const bytes = (value: unknown): Buffer => Buffer.from(String(value ?? ''), 'latin1')
