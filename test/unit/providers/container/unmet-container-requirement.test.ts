import { expect, it } from 'vitest'
import { newId } from '../../../../src/jobs/ids.ts'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import {
  assertImageAllowed,
  fitsContainer,
} from '../../../../src/providers/container/unmet-container-requirement.ts'

const manifest = (more: object) => parseManifest({ task: 'x', ...more })
const here = { allow: ['node', 'ghcr.io/acme/*'], isConfigured: () => true }

it.each([
  [{ image: 'node:22' }, here],
  [{ image: 'ghcr.io/acme/tool:1' }, here],
  [{}, { ...here, image: 'node:22' }],
])('a container can run %j', (more, context) => {
  expect(fitsContainer(manifest(more), context)).toEqual({ ok: true })
})

it.each([
  [{ image: 'debian:12' }, here, /'debian:12' matches no pattern of images.allow/, /images.allow/],
  [{}, here, /names no image/, /--image/],
  [{ image: 'node:22' }, { ...here, isConfigured: () => false }, /no container engine/, /docker|podman/i],
  [{ image: 'node:22', requires: { os: 'windows' } }, here, /requires windows, containers run linux/, /^$/],
  [{ image: 'node:22', requires: { node: 'n1' } }, here, /'n1', which only a node can have/, /^$/],
])('a container cannot run %j, and says why', (more, context, reason, hint) => {
  const fit = fitsContainer(manifest(more), context)
  expect(fit).toMatchObject({ ok: false, reason: expect.stringMatching(reason) })
  expect(fit.ok ? '' : (fit.hint ?? '')).toMatch(hint)
})

it('a kept container has its image already', () => {
  const kept = manifest({ machine: newId() })
  expect(fitsContainer(kept, { allow: [], isConfigured: () => false })).toEqual({ ok: true })
})

it('an image that is not allowed is refused again where it is used', () => {
  expect(() => assertImageAllowed('node:22', here.allow)).not.toThrow()
  expect(() => assertImageAllowed('debian:12', here.allow)).toThrow(
    "The image 'debian:12' matches no pattern of images.allow.",
  )
})
