import { connect, createServer, type Socket } from 'node:net'

export interface RelaySpeed {
  /** For every chunk in each direction. */
  delayMs?: number
  /** In each direction; absent: as fast as it goes. */
  bytesPerSecond?: number | undefined
}

/** A way to a TCP port that can be slow, thin, broken or swallow everything. Needs no rights and no kernel modules. */
export interface Relay {
  readonly port: number
  set(speed: RelaySpeed): void
  /** Closes all connections; new ones are taken. */
  cut(): void
  /** Connections are taken and nothing comes through, as behind a firewall that drops. */
  swallow(on: boolean): void
  /** What is open now stays open and nothing comes through, as after a firewall forgot it; new ones are as usual. */
  freeze(): void
  /** Freezes before so many bytes are delivered to the port without an answer between them, in however many chunks. */
  freezeBefore(bytes: number): void
  /** Bytes that came back from the port so far. */
  heard(): number
  /** What was sent meanwhile is delivered after all, also of a sender that has gone since; that it has is not told. */
  thaw(): void
  close(): Promise<void>
}

export const startRelay = (to: { host: string; port: number }, first: RelaySpeed = {}): Promise<Relay> =>
  new Promise((resolve, reject) => {
    let speed = first
    let swallowing = false
    let largest = Number.POSITIVE_INFINITY
    let heard = 0
    let unanswered = 0
    const sockets = new Set<Socket>()
    const frozen = new Set<Socket>()
    const waiting = new Set<() => void>()

    const track = (socket: Socket, peer: Socket): void => {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        if (!frozen.has(socket)) peer.destroy()
      })
    }

    /** One chunk after the other: a delay moves all that follow as well. */
    const pump = async (from: Socket, into: Socket, back: boolean): Promise<void> => {
      let tail: Promise<unknown> = Promise.resolve()
      for await (const chunk of from.iterator({ destroyOnReturn: false })) {
        const data = chunk as Buffer
        unanswered = back ? 0 : unanswered + data.length
        if (back) heard += data.length
        else if (unanswered >= largest) freeze()
        const due = performance.now() + (speed.delayMs ?? 0)
        tail = tail.then(async () => {
          while (swallowing || frozen.has(from)) await new Promise<void>(wake => waiting.add(wake))
          const thin = speed.bytesPerSecond ? (data.length / speed.bytesPerSecond) * 1000 : 0
          const wait = Math.max(0, due - performance.now()) + thin
          if (wait > 0) await new Promise(wake => setTimeout(wake, wait))
          if (!into.destroyed) into.write(data)
        })
        // The sender feels how thin the way is.
        if (speed.bytesPerSecond) await tail
      }
      const wasFrozen = frozen.has(from)
      await tail
      if (!wasFrozen) into.end()
    }

    const server = createServer(socket => {
      const peer = connect(to)
      track(socket, peer)
      track(peer, socket)
      pump(socket, peer, false).catch(() => socket.destroy())
      pump(peer, socket, true).catch(() => peer.destroy())
    })
    const freeze = (): void => {
      largest = Number.POSITIVE_INFINITY
      for (const socket of sockets) frozen.add(socket)
    }
    const cut = (): void => {
      for (const socket of [...sockets]) socket.destroy()
    }
    const wakeAll = (): void => {
      for (const wake of waiting) wake()
      waiting.clear()
    }
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address ? address.port : 0,
        set: next => {
          speed = next
        },
        cut,
        swallow: on => {
          swallowing = on
          if (!on) wakeAll()
        },
        freeze,
        freezeBefore: bytes => {
          largest = bytes
        },
        heard: () => heard,
        thaw: () => {
          frozen.clear()
          wakeAll()
        },
        close: async () => {
          cut()
          await new Promise(done => server.close(done))
        },
      })
    })
  })
