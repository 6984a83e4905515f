import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../src/store/database.ts'
import { createWriter } from '../../src/store/group-commit.ts'

/**
 * The least that can answer for a report on disk: `node:http` and group commits to SQLite, without tokens, limits,
 * redaction, offsets or anything that happens to a job besides. Who wants durable reports in one process of Node
 * pays this much. The arguments are the ids of jobs. Prints its port, and ends with its standard input.
 */
const directory = mkdtempSync(join(tmpdir(), 'deputy-callbacks-floor-'))
const database = openDatabase(join(directory, 'floor.db'))
for (const pragma of ['journal_mode = wal', 'synchronous = full']) database.get(`pragma ${pragma}`)
database.exec(`
  create table jobs (id text primary key, state text not null, exit_code integer, completed_at integer);
  create table output (job_id text not null, offset integer not null, data blob not null, unique (job_id, offset));
`)
const writer = createWriter(database)
await writer.write(db => {
  for (const id of process.argv.slice(2)) db.run(`insert into jobs (id, state) values (?, 'running')`, id)
})

const offsets = new Map<string, number>()

const append = (id: string, data: Buffer): Promise<unknown> => {
  const offset = offsets.get(id) ?? 0
  offsets.set(id, offset + data.length)
  return writer.write(db =>
    db.run('insert into output (job_id, offset, data) values (?, ?, ?)', id, offset, data),
  )
}

const complete = (id: string, body: Buffer): Promise<unknown> => {
  const { status, exit_code, output } = JSON.parse(body.toString()) as {
    status: string
    exit_code: number
    output: string
  }
  void append(id, Buffer.from(output))
  return writer.write(db =>
    db.run(
      'update jobs set state = ?, exit_code = ?, completed_at = ? where id = ?',
      status,
      exit_code,
      Date.now(),
      id,
    ),
  )
}

const read = (request: IncomingMessage): Promise<Buffer> =>
  new Promise(resolve => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => resolve(Buffer.concat(parts)))
  })

const server = createServer(async (request, response) => {
  const [, , id = '', action] = (request.url ?? '').split('/')
  const body = await read(request)
  if (action === 'output') await append(id, body)
  else if (action === 'complete') await complete(id, body)
  response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': 17 })
    .end('{"received":true}')
})
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`),
)

process.stdin.resume().on('end', async () => {
  await writer.flush()
  database.close()
  rmSync(directory, { recursive: true, force: true })
  process.exit(0)
})
