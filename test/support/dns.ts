import { createSocket } from 'node:dgram'

export interface TestDns {
  readonly address: string
  /** Names that were asked for. */
  readonly asked: string[]
  close(): void
}

/** A name server on loopback that knows some IPv4 and IPv6 addresses, and says of all else that there is none. */
export const startDns = (names: Readonly<Record<string, string>>): Promise<TestDns> =>
  new Promise((resolve, reject) => {
    const asked: string[] = []
    const socket = createSocket('udp4')
    socket.once('error', reject)
    socket.on('message', (query, from) => {
      const labels: string[] = []
      let at = 12
      for (let length = query[at]!; length > 0; length = query[at]!) {
        labels.push(query.toString('latin1', at + 1, at + 1 + length))
        at += length + 1
      }
      const name = labels.join('.').toLowerCase()
      const type = query.readUInt16BE(at + 1)
      asked.push(name)
      const address = names[name]
      const known = address !== undefined && (type === 28) === address.includes(':')
      const data = known ? bytesOf(address) : undefined
      const header = Buffer.from(query.subarray(0, 12))
      header.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2)
      header.writeUInt16BE(data ? 1 : 0, 6)
      header.writeUInt32BE(0, 8)
      const question = query.subarray(12, at + 5)
      const answer = Buffer.alloc(data ? 12 : 0)
      if (data) {
        answer.writeUInt16BE(0xc00c, 0)
        answer.writeUInt16BE(type, 2)
        answer.writeUInt16BE(1, 4)
        answer.writeUInt32BE(60, 6)
        answer.writeUInt16BE(data.length, 10)
      }
      socket.send(Buffer.concat([header, question, answer, data ?? Buffer.alloc(0)]), from.port, from.address)
    })
    socket.bind(0, '127.0.0.1', () =>
      resolve({ address: `127.0.0.1:${socket.address().port}`, asked, close: () => void socket.close() }),
    )
  })

const bytesOf = (address: string): Buffer => {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string): string[] => text.split(':').filter(Boolean)
  const missing = 8 - groups(head).length - groups(tail).length
  const all = [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail)]
  return Buffer.from(all.map(group => group.padStart(4, '0')).join(''), 'hex')
}
