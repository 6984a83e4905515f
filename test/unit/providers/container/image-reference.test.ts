import { describe, expect, it } from 'vitest'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import { fullName, isAllowed, parseImage } from '../../../../src/providers/container/image-reference.ts'

describe('image names', () => {
  it.each([
    ['node', 'docker.io', 'docker.io/library/node:latest'],
    ['node:22', 'docker.io', 'docker.io/library/node:22'],
    ['acme/app:1', 'docker.io', 'docker.io/acme/app:1'],
    ['localhost/app', 'localhost', 'localhost/app:latest'],
    ['127.0.0.1:5000/a/b:1', '127.0.0.1:5000', '127.0.0.1:5000/a/b:1'],
    ['ghcr.io/a/b@sha256:ab', 'ghcr.io', 'ghcr.io/a/b@sha256:ab'],
  ])('%s comes from %s', (name, registry, full) => {
    expect(parseImage(name).registry).toBe(registry)
    expect(fullName(name)).toBe(full)
  })

  it('match the patterns of images.allow as a whole', () => {
    const allow = ['node', 'ghcr.io/acme/*', 'debian:12*']
    for (const image of [
      'node',
      'node:22',
      'docker.io/library/node:20',
      'ghcr.io/acme/x/y:1',
      'debian:12-slim',
    ])
      expect([image, isAllowed(image, allow)]).toEqual([image, true])
    for (const image of ['evil.io/node:22', 'nodex', 'debian:11', 'ghcr.io/acmex/a', 'x/ghcr.io/acme/a'])
      expect([image, isAllowed(image, allow)]).toEqual([image, false])
  })

  it('are checked in the manifest', () => {
    const image = (name: string) => parseManifest({ task: 'x', image: name }).image
    expect(image('127.0.0.1:5000/a/b_c:v1')).toBe('127.0.0.1:5000/a/b_c:v1')
    for (const bad of ['../x', 'a b', 'Node', '-x', 'a:b:c', '', 'x?y=1'])
      expect(() => image(bad)).toThrow(/is not an image|image/)
  })
})
