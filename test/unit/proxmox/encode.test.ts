import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeBody, encodeParams, MAX_BODY_BYTES, path } from '../../../src/proxmox/encode.ts'

describe('parameters', () => {
  it('writes booleans as 1 and 0, repeats the key of an array, drops what is undefined', () => {
    expect(encodeParams({ full: true, onboot: false, command: ['a', 'b c'], name: undefined, x: null })).toBe(
      'full=1&onboot=0&command=a&command=b+c',
    )
  })

  it('carries any text unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text => {
        expect(new URLSearchParams(encodeParams({ text })).get('text')).toBe(text)
      }),
    )
  })

  it('refuses a body that Proxmox VE would refuse, before it is sent', () => {
    expect(encodeBody({ a: 'x'.repeat(MAX_BODY_BYTES - 2) })).toHaveLength(MAX_BODY_BYTES)
    expect(() => encodeBody({ a: 'x'.repeat(MAX_BODY_BYTES) })).toThrow(
      expect.objectContaining({ code: 'too_large' }),
    )
  })
})

describe('paths', () => {
  it('lets no value add a segment, a query or a step up', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), value => {
        fc.pre(value !== '.' && value !== '..')
        const url = new URL(path`/nodes/${value}/qemu`, 'https://h')
        expect(url.pathname.split('/')).toHaveLength(4)
        expect(decodeURIComponent(url.pathname.split('/')[2]!)).toBe(value)
        expect(url.search + url.hash).toBe('')
      }),
    )
    expect(() => path`/nodes/${'..'}/qemu`).toThrow('cannot be part')
    expect(() => path`/nodes/${''}/qemu`).toThrow('cannot be part')
  })

  it('encodes a task id', () => {
    expect(path`/nodes/pve1/tasks/${'UPID:pve1:0:0:0:t:1:a@pve!t:'}/status`).toBe(
      '/nodes/pve1/tasks/UPID%3Apve1%3A0%3A0%3A0%3At%3A1%3Aa%40pve!t%3A/status',
    )
  })
})
