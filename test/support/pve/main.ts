import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { startEmulator } from './emulator.ts'
import { fastGuests } from './guests/fast.ts'
import { REAL_TIMING } from './state.ts'

const USAGE = `Usage: npm run pve -- [flags]

An emulated Proxmox VE cluster on loopback with a template, a pool and a token. Its guests are processes on
this computer, without isolation. Ctrl-C ends it.

  --port PORT             Port of the first node; the others follow (any free ones)
  --nodes N               Number of nodes, 1 to 16 (2)
  --guests process|none   Run guests as processes, or do not run them (process)
  --slow                  Take as long as a real cluster
`

const main = async (): Promise<void> => {
  const { port, nodes, guests, slow, help } = flags()
  if (help) {
    process.stdout.write(USAGE)
    return
  }
  const emulator = await startEmulator({
    nodes: Array.from({ length: nodes }, (_, index) => `pve${index + 1}`),
    ...(port === undefined ? {} : { port }),
    ...(guests ? { guests: fastGuests() } : {}),
    ...(slow ? { timing: REAL_TIMING } : {}),
  }).catch((error: NodeJS.ErrnoException & { port?: number }) => {
    throw error.code === 'EADDRINUSE'
      ? new Error(`Port ${error.port} is taken. Choose another --port, or leave it out.`)
      : error
  })
  const settings = {
    ...emulator.env(),
    PROXMOX_POOL: 'jobs',
    PROXMOX_SEED_STORAGE: 'seeds',
    CALLBACK_HOST: '127.0.0.1',
  }
  process.stdout.write(
    Object.entries(settings)
      .map(([name, value]) => `export ${name}='${value}'\n`)
      .join(''),
  )
  process.stderr.write(
    `Serving ${nodes} ${nodes === 1 ? 'node' : 'nodes'}; root@pam has the password "${emulator.standard.rootPassword}". Ctrl-C ends it.
In another terminal, paste the lines above, then: deputy daemon restart; deputy run --runtime proxmox -- uname -a\n`,
  )
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  await emulator.close()
}

const flags = () => {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      nodes: { type: 'string', default: '2' },
      guests: { type: 'string', default: 'process' },
      slow: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.guests !== 'process' && values.guests !== 'none')
    throw new Error(`Unknown --guests '${values.guests}': process or none.`)
  return {
    ...(values.port === undefined ? {} : { port: wholeNumber('port', values.port, 65_535) }),
    nodes: wholeNumber('nodes', values.nodes, 16),
    guests: values.guests === 'process',
    slow: values.slow,
    help: values.help,
  }
}

const wholeNumber = (name: string, text: string, most: number): number => {
  const number = Number(text)
  if (Number.isInteger(number) && number >= 1 && number <= most) return number
  throw new Error(`Invalid --${name} '${text}': a number from 1 to ${most}.`)
}

main().catch((error: Error) => {
  process.stderr.write(`error: ${error.message}\n`)
  process.exitCode = 2
})
