import { createServer } from 'node:http'

/** The floor of everything over the socket: what node:http alone does with a small body. `argv[2]` is the path. */
createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length > 0 ? Buffer.concat(chunks) : Buffer.from('{}')
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
}).listen(process.argv[2])
