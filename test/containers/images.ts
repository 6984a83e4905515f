import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestCli, type TestCli } from '../support/cli.ts'
import { BUSYBOX, importBusybox, type TestEngine } from '../support/containers/engines.ts'
import { PASSWORD, type Registries, USER } from '../support/containers/registry.ts'

/** Images of a registry, with and without a login. */
export const describeImages = (engine: TestEngine | undefined, registries: Registries | undefined): void => {
  describe.skipIf(engine === undefined)('images', () => {
    // The body runs for skipped tests, too.
    if (engine === undefined || registries === undefined) return
    const { host, directory, downloads } = engine
    const { open, closed } = registries
    const home = join(directory, 'home')
    let cli: TestCli

    beforeAll(async () => {
      await importBusybox(engine)
      await open.push(engine, BUSYBOX, 'acme/tool:1')
      await closed.push(engine, BUSYBOX, 'acme/private:1')
      await importLarge(engine)
      await open.push(engine, LARGE, 'acme/large:1')
      // Its layers must not be there.
      await engine.api('DELETE', `/v1.40/images/${LARGE}`)
      cli = createTestCli({ DOCKER_HOST: host, HOME: home, XDG_RUNTIME_DIR: home })
      mkdirSync(join(home, '.docker'), { recursive: true })
    })
    afterAll(() => cli?.close())

    const refused = async (flags: readonly string[]): Promise<string> => {
      const { code, stderr } = await cli.run(['run', '--retries', '0', ...flags, '--', 'true'])
      expect(code).not.toBe(0)
      return stderr
    }

    it('are pulled when they are missing, and the result has their digest', async () => {
      const image = `${open.host}/acme/tool:1`
      const result = await cli.json(['run', '--json', '--image', image, '--', 'echo', 'from the image'])
      expect(result).toMatchObject({
        status: 'success',
        runtime: 'container',
        output: 'from the image\n',
        image: { name: image, digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
      })
      const doctor = await cli.run(['doctor'])
      expect(doctor.stdout).toContain(`at ${host} (from DOCKER_HOST)`)
      expect(doctor.stdout).toMatch(/storage \S+, cgroup v[12], not rootless/)
    })

    it('are pulled again with --pull always only', async () => {
      const image = `${open.host}/acme/tool:1`
      const used = async (...flags: string[]): Promise<string> => {
        type Result = { image: { digest: string } }
        return (await cli.json<Result>(['run', '--json', '--image', image, ...flags, '--', 'true'])).image
          .digest
      }
      await used()
      const { text } = await engine.api('GET', `/v1.40/images/${image}/json`)
      const { Id } = JSON.parse(text) as { Id: string }
      // Another image under the same name; the engine keeps the first one.
      await importBusybox(engine)
      await open.push(engine, BUSYBOX, 'acme/tool:1')
      await engine.api('POST', `/v1.40/images/${Id}/tag?repo=${open.host}/acme/tool&tag=1`)
      const old = await used()
      const fresh = await used('--pull', 'always')
      expect(fresh).not.toBe(old)
      expect(await used()).toBe(fresh)
    })

    it('of a private registry need the credentials of the docker configuration', async () => {
      const image = `${closed.host}/acme/private:1`
      expect(await refused(['--image', image])).toContain(`docker login ${closed.host}`)
      const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64')
      const config = { auths: { [closed.host]: { auth } } }
      writeFileSync(join(home, '.docker/config.json'), JSON.stringify(config))
      const { code, stderr } = await cli.run(['run', '--image', image, '--', 'true'])
      expect(code, stderr).toBe(0)
    })

    it.each([
      [['--image', 'REGISTRY/acme/none:1'], /Cannot pull the image .*acme\/none:1/],
      [
        ['--image', 'REGISTRY/acme/tool:1', '--platform', 'linux/s390x'],
        /only for linux\/.*Choose a platform/s,
      ],
      [
        ['--image', 'REGISTRY/acme/tool:1', '--platform', 'linux/s390x', '--pull', 'never'],
        /does not have the image .* for linux\/s390x/,
      ],
      [['--image', 'REGISTRY/acme/tool:9', '--pull', 'never'], /Pull it: docker pull/],
      [['--image', '../etc'], /is not an image such as 'node:22'/],
    ])('that cannot be used are refused: %s', async (flags, message) => {
      expect(await refused(flags.map(flag => flag.replace('REGISTRY', open.host)))).toMatch(message)
    })

    it('that do not fit on the disk of the engine are refused with that reason', async () => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'full', downloads])
      try {
        expect(await refused(['--image', `${open.host}/acme/large:1`])).toContain(
          'The disk of the engine is full',
        )
      } finally {
        execFileSync('umount', [downloads])
      }
    })

    it('without a shell are refused before anything runs, and the pull was reported in layers', async () => {
      const stderr = await refused(['--image', `${open.host}/acme/large:1`])
      expect(stderr).toContain(`The image '${open.host}/acme/large:1' has no shell`)
      const { jobs } = await cli.json<{ jobs: { job_id: string }[] }>(['list', '--limit', '1', '--json'])
      const { stdout } = await cli.run(['events', jobs[0]!.job_id])
      expect(stdout).toMatch(/pulling .*\/acme\/large:1: [01] of 1 layers/)
    })
  })
}

const LARGE = 'localhost/deputy-test/large:1'

/** An image that does not compress. */
const importLarge = async (engine: TestEngine): Promise<void> => {
  const root = join(engine.directory, 'large')
  mkdirSync(root)
  writeFileSync(join(root, 'data'), randomBytes(1_000_000))
  execFileSync('tar', ['-C', root, '-cf', `${root}.tar`, '.'])
  await engine.importImage(`${root}.tar`, LARGE)
}
