import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyClusterEnvironment } from '../../../src/nodes/cluster-variables.ts'
import { findNode, parseCluster, parseNode } from '../../../src/nodes/inventory.ts'
import { isHostName, isJumpList, isUserName, parseDestination } from '../../../src/nodes/ssh-destination.ts'
import { thrownError as thrown } from '../../support/thrown-error.ts'

describe('a node of the inventory', () => {
  it('needs only an id and a host', () => {
    expect(parseNode({ id: 'builder', host: 'builder.local' })).toEqual({
      id: 'builder',
      host: 'builder.local',
      aliases: [],
      labels: {},
      capabilities: [],
      specialties: [],
      priority: 5,
    })
  })

  it('normalizes the names of systems and processors', () => {
    const node = parseNode({ id: 'a', host: 'a', os: 'Darwin', arch: 'AArch64', memory: '16G' })
    expect(node).toMatchObject({ os: 'macos', arch: 'arm64', memory: 16384 })
    expect(parseNode({ id: 'a', host: 'a', os: 'Linux', arch: 'amd64' })).toMatchObject({
      os: 'linux',
      arch: 'x86_64',
    })
  })

  it('suggests the nearest key for an unknown one', () => {
    const error = thrown(() => parseCluster({ nodes: [{ id: 'a', host: 'a', max_task: 3 }] }))
    expect(error.code).toBe('invalid')
    expect(error.message).toBe('unknown key "nodes[0].max_task"; did you mean "max_tasks"?')
  })

  it('suggests the nearest key in a nested section with defaults', () => {
    expect(thrown(() => parseCluster({ thresholds: { cpuu: 3 } })).message).toContain('did you mean "cpu"?')
  })

  it('refuses two nodes with one name', () => {
    const nodes = [
      { id: 'a', host: 'a', aliases: ['builder'] },
      { id: 'Builder', host: 'b' },
    ]
    expect(thrown(() => parseCluster({ nodes })).message).toBe(
      "The name 'builder' belongs to both node 'a' and node 'Builder'.",
    )
  })

  it('reserves the name "local" for this computer', () => {
    expect(thrown(() => parseNode({ id: 'local', host: 'x' })).message).toContain('this computer')
  })

  it('is found by id or alias, ignoring case; an error suggests the nearest name', () => {
    const { nodes } = parseCluster({ nodes: [{ id: 'mac-studio', host: 'h', aliases: ['studio'] }] })
    expect(findNode(nodes, 'STUDIO').id).toBe('mac-studio')
    const error = thrown(() => findNode(nodes, 'mac-studo'))
    expect(error.code).toBe('not_found')
    expect(error.message).toContain("did you mean 'mac-studio'?")
  })
})

describe('host, user and jump names', () => {
  it.each(['-oProxyCommand=x', '', 'a b', 'a;b', 'a\nb', '$(x)', 'a..b', 'a`b', 'a/b', '%h', '-', 'a@b'])(
    'refuses the host %j',
    host => expect(isHostName(host)).toBe(false),
  )

  it.each(['a', 'builder.local', '10.0.0.7', '172.16.3.4', 'fd00::7', 'node_1', 'a.b.'])(
    'takes the host %j',
    host => expect(isHostName(host)).toBe(true),
  )

  it.each(['-l', 'a b', 'a;b', '', 'root\n', '$x'])('refuses the user %j', user =>
    expect(isUserName(user)).toBe(false),
  )

  it('accepts chains of jump hosts and refuses options in them', () => {
    expect(isJumpList('me@bastion:2222,[fd00::1]:22')).toBe(true)
    expect(isJumpList('bastion,-oProxyCommand=x')).toBe(false)
    expect(isJumpList('bastion:99999')).toBe(false)
  })

  it('parses a destination', () => {
    expect(parseDestination('me@h:22')).toEqual({ user: 'me', host: 'h', port: 22 })
    expect(parseDestination('[fd00::1]:22')).toEqual({ host: 'fd00::1', port: 22 })
    expect(parseDestination('fd00::1')).toEqual({ host: 'fd00::1' })
    expect(parseDestination('me@-o')).toBeUndefined()
  })

  it('never accepts a leading dash or white space', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const risky = text.startsWith('-') || /\s|[;&|$`'"\\<>(){}*?!~#@/]/.test(text)
        if (risky) expect(isHostName(text)).toBe(false)
      }),
    )
  })
})

describe('the CLUSTER_* variables', () => {
  const base = parseCluster({
    nodes: [
      { id: 'mac-studio', host: 'studio.local', aliases: ['orchestrator'] },
      { id: 'macpro51', host: 'macpro51.local' },
    ],
  })

  it('set thresholds, timeouts and the user, and record their origin', () => {
    const { config, origins } = applyClusterEnvironment(base, {
      CLUSTER_SSH_USER: 'ann',
      CLUSTER_CPU_THRESHOLD: '75',
      CLUSTER_LOAD_THRESHOLD: '4',
      CLUSTER_IP_CACHE_TTL: '0',
      CLUSTER_CMD_TIMEOUT: '60',
      PATH: '/bin',
    })
    expect(config.ssh.user).toBe('ann')
    expect(config.thresholds).toMatchObject({ cpu: 75, load: 4, memory: 80 })
    expect(config.addresses.ttl).toBe(0)
    expect(config.timeouts.command).toBe(60)
    expect(origins).toMatchObject({
      'ssh.user': 'CLUSTER_SSH_USER',
      'thresholds.cpu': 'CLUSTER_CPU_THRESHOLD',
    })
    expect(base.ssh.user).toBeUndefined()
  })

  it.each([
    ['CLUSTER_SSH_USER', 'ann', 'ssh.user', 'ann'],
    ['CLUSTER_SSH_TIMEOUT', '7', 'ssh.timeout', 7],
    ['CLUSTER_SSH_CONNECT_TIMEOUT', '3', 'ssh.connectTimeout', 3],
    ['CLUSTER_SSH_RETRIES', '4', 'ssh.retries', 4],
    ['CLUSTER_CPU_THRESHOLD', '75', 'thresholds.cpu', 75],
    ['CLUSTER_LOAD_THRESHOLD', '4.5', 'thresholds.load', 4.5],
    ['CLUSTER_MEMORY_THRESHOLD', '91', 'thresholds.memory', 91],
    ['CLUSTER_CMD_TIMEOUT', '61', 'timeouts.command', 61],
    ['CLUSTER_STATUS_TIMEOUT', '6', 'timeouts.status', 6],
    ['CLUSTER_IP_CACHE_TTL', '0', 'addresses.ttl', 0],
    ['CLUSTER_GATEWAY', '192.168.7.1', 'addresses.gateway', '192.168.7.1'],
    ['CLUSTER_DNS', '192.168.7.53', 'addresses.dns', '192.168.7.53'],
  ])('%s=%s sets %s', (name, text, key, value) => {
    const { config, origins } = applyClusterEnvironment(base, { [name]: text })
    const [section, field] = key.split('.') as ['ssh', 'user']
    expect(config[section][field]).toBe(value)
    expect(origins).toEqual({ [key]: name })
  })

  it('match a node by id or alias, with or without the dash', () => {
    const { config, warnings } = applyClusterEnvironment(base, {
      CLUSTER_MACSTUDIO_HOST: 'other.local',
      CLUSTER_ORCHESTRATOR_IP: '192.168.1.16',
      CLUSTER_MACPRO51_IP: '10.0.0.3',
    })
    expect(config.nodes[0]).toMatchObject({ host: 'other.local', fallback: '192.168.1.16' })
    expect(config.nodes[1]).toMatchObject({ host: 'macpro51.local', fallback: '10.0.0.3' })
    expect(warnings).toEqual([])
  })

  it('add a node for the host or address of an unknown one', () => {
    const { config, origins, warnings } = applyClusterEnvironment(base, {
      CLUSTER_INFERENCE_IP: '192.168.1.8',
      CLUSTER_INFERENCE_USER: 'ann',
      CLUSTER_INFERENCE_HOST: 'server.local',
      CLUSTER_GPU_BOX_IP: '10.0.0.9',
    })
    expect(config.nodes.slice(base.nodes.length)).toMatchObject([
      { id: 'inference', host: 'server.local', fallback: '192.168.1.8', user: 'ann' },
      { id: 'gpu-box', host: '10.0.0.9' },
    ])
    expect(origins[`nodes[${base.nodes.length}].host`]).toBe('CLUSTER_INFERENCE_HOST')
    expect(warnings).toEqual([])
  })

  it('warn about a node that does not exist', () => {
    const { warnings } = applyClusterEnvironment(base, { CLUSTER_MACPRO52_IP: '10.0.0.3' })
    expect(warnings).toEqual(['CLUSTER_MACPRO52_IP does not match a node; did you mean CLUSTER_MACPRO51_IP?'])
  })

  it('are named in the error for an invalid value', () => {
    expect(thrown(() => applyClusterEnvironment(base, { CLUSTER_SSH_RETRIES: 'many' })).message).toBe(
      "CLUSTER_SSH_RETRIES is 'many', not a number.",
    )
    const host = thrown(() => applyClusterEnvironment(base, { CLUSTER_MACPRO51_HOST: '-oProxyCommand=x' }))
    expect(host.message).toContain('CLUSTER_MACPRO51_HOST')
    expect(thrown(() => applyClusterEnvironment(base, { CLUSTER_CPU_THRESHOLD: '900' })).message).toContain(
      'CLUSTER_CPU_THRESHOLD',
    )
  })
})
