import { readFileSync } from 'node:fs'
import type { Certificate } from '../../../src/guest/certificate.ts'
import { startEmulator } from '../../support/pve/emulator.ts'
import { fastGuests } from '../../support/pve/guests/fast.ts'

/** The Proxmox VE stand-in as a process that can be killed. A new one is the same cluster, but empty. */
const [port = '', file = ''] = process.argv.slice(2)
const certificate = JSON.parse(readFileSync(file, 'utf8')) as Certificate
const emulator = await startEmulator({ port: Number(port), certificate, guests: fastGuests() })
process.stdout.write(`${JSON.stringify(emulator.env())}\n`)
