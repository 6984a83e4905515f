import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createShim, type RemoteShim } from '../../../src/cluster/remote/shim.ts'
import type { SessionRequest, Ssh } from '../../../src/cluster/ssh/session.ts'
import { pushTree } from '../../../src/cluster/sync/push.ts'
import { directorySource } from '../../../src/cluster/sync/tree.ts'
import { fillWorkspace, listWorkspace, packFrom } from '../../../src/cluster/sync/workspace.ts'
import { labCluster, runOn } from '../../support/labcluster.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()

/** Everything that is sent to the node looks for processes elsewhere, as on macOS, and so asks ps. */
const withoutProc = (ssh: Ssh): Ssh => {
  const changed = (text: string): string => text.replaceAll('/proc/', '/nowhere/')
  const run: Ssh['run'] = request => {
    const { script } = request
    // Sessions that were opened ahead have the usual program already.
    const text = typeof script === 'function' ? script(undefined) : script
    return ssh.run({ ...request, script: changed(text) } satisfies SessionRequest)
  }
  return { ...ssh, run }
}

describe.skipIf(missing !== undefined).each(['best', 'shell'] as const)(
  `a node that has no /proc, as a Mac (%s)${missing ? ` (skipped: ${missing})` : ''}`,
  holder => {
    let lab: SshLab
    let cluster: ReturnType<typeof labCluster>
    let shim: RemoteShim
    const { signal } = new AbortController()
    let next = 0
    const newId = (): string => `m${process.pid}-${holder}-${next++}`
    const processes = (): string =>
      lab.nodes[0]!.inside('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "; true')

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 1 })
      const real = labCluster(lab)
      shim = createShim(withoutProc(real.ssh), 'test', holder)
      cluster = Object.create(real, { shim: { value: shim } })
    })
    afterAll(async () => {
      cluster?.dispose()
      await lab?.close()
    })
    const where = async () => ({ target: await cluster.target(cluster.find('n1'), signal), signal })

    it('runs a command and tells how it ended', async () => {
      const held = await runOn(cluster, 'n1', { id: newId(), command: 'echo out; echo err >&2; exit 7' })
      expect(held).toMatchObject({ end: { kind: 'exit', code: 7 }, stdout: 'out\n', stderr: 'err\n' })
    })

    it('ends the whole tree of a command', async () => {
      const id = newId()
      let up = false
      const command = '(sleep 8111 & sleep 8112) & sh -c "sleep 8113; true" & echo up; wait'
      const running = runOn(cluster, 'n1', { id, command }, { onOutput: () => (up = true) })
      await waitFor(() => up && ['8111', '8112', '8113'].every(each => processes().includes(`sleep ${each}`)))
      expect(await shim.list(await where())).toContainEqual(expect.objectContaining({ id, state: 'running' }))
      const left = await shim.cancel(id, { ...(await where()), graceSeconds: 0.2 })
      expect(left).toEqual([])
      expect((await running).end).toMatchObject({ kind: 'exit', how: 'cancel' })
      expect(processes()).not.toMatch(/sleep 811[123]/)
    })

    it('ends it in time, and removes what it left', async () => {
      const id = newId()
      const { end } = await runOn(cluster, 'n1', {
        id,
        command: 'sleep 8222',
        timeoutSeconds: 1,
        graceSeconds: 0.2,
      })
      expect(end).toMatchObject({ kind: 'exit', how: 'timeout' })
      expect(processes()).not.toContain('sleep 8222')
      expect(await shim.remove([id], await where())).toEqual([id])
      expect(await shim.list(await where())).not.toContainEqual(expect.objectContaining({ id }))
    })
  },
)

/** As those of macOS and the BSDs are: `find` prints no formats, `stat` has its own, and tar may be libarchive's. */
const BSD_TOOLS = {
  find: 'for word; do [ "$word" = -printf ] && { echo "find: -printf: unknown primary" >&2; exit 1; }; done\nexec /usr/bin/find "$@"',
  stat: '[ "$1" = -f ] || exit 1\nformat=$(echo "$2" | sed "s/%z/%s/; s/%Lp/%a/; s/%N/%n/; s/%m/%Y/")\nshift 2\nexec /usr/bin/stat -c "$format" "$@"',
  cp: 'for word; do case $word in --*) echo "cp: illegal option" >&2; exit 64 ;; esac; done\nexec /usr/bin/cp "$@"',
  ...(existsSync('/usr/bin/bsdtar') && { tar: 'exec /usr/bin/bsdtar "$@"' }),
}

describe.skipIf(missing !== undefined)('a workspace on a node with the tools of a BSD', () => {
  let lab: SshLab
  let cluster: ReturnType<typeof labCluster>
  const { signal } = new AbortController()
  beforeAll(async () => {
    lab = await createSshLab({ nodes: 1 })
    cluster = labCluster(lab)
    mkdirSync(`${lab.directory}/bsd`)
    for (const [name, body] of Object.entries(BSD_TOOLS))
      writeFileSync(`${lab.directory}/bsd/${name}`, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  })
  afterAll(async () => {
    cluster?.dispose()
    await lab?.close()
  })

  it('is filled, listed and read', async () => {
    const path = `PATH=${lab.directory}/bsd:$PATH; export PATH; `
    const run: Ssh['run'] = request =>
      cluster.ssh.run({ ...request, script: `${path}${String(request.script)}` })
    const where = {
      ssh: { ...cluster.ssh, run },
      owner: 'test',
      target: await cluster.target(cluster.find('n1'), signal),
      signal,
      id: 'bsd',
    }
    const source = mkdtempSync(join(lab.directory, 'src'))
    writeFileSync(join(source, 'a b.txt'), 'one\n')
    writeFileSync(join(source, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
    symlinkSync('a b.txt', join(source, 'link'))
    await pushTree({ ...where, key: 'k', source: directorySource(source) })
    await fillWorkspace({ ...where, key: 'k', keepBase: true })
    lab.nodes[0]!.inside(`echo two >> '${lab.nodes[0]!.home}/.cache/deputy/test/work/bsd/a b.txt'`)
    const { files, changed } = await listWorkspace(where)
    expect(files.sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'a b.txt', type: 'file', size: 8, mode: 0o644 },
      { path: 'link', type: 'link', size: 7, mode: expect.any(Number) },
      { path: 'run.sh', type: 'file', size: 10, mode: 0o755 },
    ])
    expect([...changed]).toEqual(['a b.txt'])
    const tar = extract()
    const fed = pipeline(packFrom({ ...where, files: ['a b.txt', 'run.sh'] }), tar)
    const names: string[] = []
    for await (const entry of tar) {
      names.push(`${entry.header.name} ${entry.header.size}`)
      entry.resume()
    }
    await fed
    expect(names).toEqual(['./a b.txt 8', './run.sh 10'])
  })
})
