import { request as plainly } from 'node:http'
import { request as securely } from 'node:https'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createCertificate } from '../../../src/guest/certificate.ts'
import type { GuestListener } from '../../../src/guest/listener.ts'
import { createMemoryMachine, serveMachine, TOKEN } from '../../support/guest.ts'

let listener: GuestListener | undefined
afterEach(() => listener?.close())

const tls = createCertificate({ commonName: 'deputy', names: ['127.0.0.1'] })

const ask = (secure: boolean, path: string, headers = {}): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = { port: listener!.port, host: '127.0.0.1', path, headers, agent: false }
    const sent = secure ? securely({ ...options, ca: tls.cert }) : plainly(options)
    sent.once('response', answer => resolve(answer.resume().statusCode ?? 0))
    sent.once('error', reject)
    sent.end()
  })

describe('a port for HTTPS and for a proxy', () => {
  it('takes reports over HTTPS alone, and answers both', async () => {
    listener = await serveMachine(createMemoryMachine({ argv: ['true'] }), { tls })
    const authorization = `Bearer ${TOKEN}`
    expect(await ask(true, '/health')).toBe(200)
    expect(await ask(true, '/guest/v1/work', { authorization })).toBe(200)
    expect(await ask(false, '/guest/v1/work', { authorization })).toBe(400)
    expect(await ask(false, 'http://example.org/')).toBe(407)
  })

  it('is closed although somebody has said nothing yet, or only half of it', async () => {
    listener = await serveMachine(createMemoryMachine({ argv: ['true'] }), { tls })
    const open = ['', '\x16', 'GET /'].map(text => {
      const socket = connect(listener!.port, '127.0.0.1')
      socket.on('error', () => {})
      if (text !== '') socket.write(text, 'latin1')
      return new Promise<void>(resolve => socket.once('close', () => resolve()))
    })
    expect(await ask(true, '/health')).toBe(200)
    await listener.close()
    await Promise.all(open)
  })
})
