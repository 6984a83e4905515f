import { mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { openBallast } from '../../../src/store/ballast-file.ts'

it('reserves space on a disk with room, gives it up once, and takes it again', () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-ballast-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'ballast')
  const size = () => statSync(path, { throwIfNoEntry: false })?.size
  const ballast = openBallast(path)
  const reserved = size()
  expect(reserved).toBeGreaterThan(1_000_000)
  expect([ballast.release(), size(), ballast.release()]).toEqual([true, undefined, false])
  expect([ballast.restore(), size(), ballast.restore()]).toEqual([true, reserved, true])
  // A file that was cut short, as by a power cut, reserves nothing.
  truncateSync(path, 10)
  openBallast(path)
  expect(size()).toBe(reserved)
})
