import { AppError } from '../../jobs/errors.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { isOutage } from './retry-through-outage.ts'

export interface AgentLink {
  /** False while no agent answers. */
  isUp(signal: AbortSignal): Promise<boolean>
  /** Waits for the end of a command; the agent keeps its output until then. */
  exec(argv: readonly string[], signal: AbortSignal): Promise<{ code: number; out: Buffer; err: Buffer }>
  writeFile(file: string, content: Buffer, signal: AbortSignal): Promise<void>
}

/** 61 440 characters of base64. */
const MAX_PART = 46_080

/** The QEMU guest agent of a VM, with its traps kept away from callers. */
export const createAgentLink = (proxmox: Proxmox, at: { node: string; vmid: number }): AgentLink => {
  // Asked each time: a machine may be moved to another node.
  const base = () => path`/nodes/${at.node}/qemu/${at.vmid}/agent`

  /** Our own base64: what Proxmox VE encodes itself breaks on every character beyond Latin-1. */
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
      // The result is told once: a lost answer is an error, and the caller repeats the whole command.
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

/** One character beyond Latin-1 silences the agent until the guest is reset. */
const ascii = (text: string): string => {
  if (/^[\t\n\x20-\x7e]*$/.test(text)) return text
  throw new AppError('internal', 'A command for the guest agent holds characters beyond ASCII.')
}

/** Bytes come back as characters of Latin-1. */
const bytes = (value: unknown): Buffer => Buffer.from(String(value ?? ''), 'latin1')
