import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Certificates that the user trusts, one `host:port fingerprint` per line. It is read at each use: no restart needed. */
export const trustedFingerprints = (file: string, host: string): string[] =>
  readLines(file).flatMap(line => {
    const [name, fingerprint] = line.split(' ')
    return name === host && fingerprint !== undefined ? [fingerprint] : []
  })

/** Replaces what was trusted for the host. */
export const trustHost = (file: string, host: string, fingerprint: string): void => {
  const others = readLines(file).filter(line => line !== '' && !line.startsWith(`${host} `))
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, [...others, `${host} ${fingerprint}`, ''].join('\n'), { mode: 0o600 })
}

const readLines = (file: string): string[] => {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    return []
  }
}
