import { connect } from 'node:net'

/** Sends bytes as they are, for what no HTTP client would say. Resolves with all that came back. */
export const raw = (port: number, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1')
    socket.on('data', chunk => {
      answer += chunk
    })
    socket.once('error', reject)
    socket.once('close', () => resolve(answer))
    socket.write(text)
  })
