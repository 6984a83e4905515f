import { describe, expect, it } from 'vitest'
import { type AddFlags, describedNode, entryOf, nodeFromFlags } from '../../../src/cli/nodes/add.ts'
import type { ProbeReport } from '../../../src/nodes/probe/probe-report.ts'

const NONE: AddFlags = { alias: [], label: [], specialty: [] }

describe('the entry of a node that is added', () => {
  it('has what the flags say, each under the name of the configuration', () => {
    const node = nodeFromFlags('ann@builder.local:2222', {
      id: 'b1',
      identity: import.meta.filename,
      jump: 'ann@gate:22',
      fallback: '192.168.7.5',
      alias: ['linux', 'big'],
      label: ['zone=eu', 'note=a=b'],
      specialty: ['build'],
      priority: 2,
      'max-tasks': 6,
    })
    expect(entryOf(node)).toEqual({
      id: 'b1',
      host: 'builder.local',
      user: 'ann',
      port: 2222,
      identity: import.meta.filename,
      jump: 'ann@gate:22',
      fallback: '192.168.7.5',
      aliases: ['linux', 'big'],
      labels: { zone: 'eu', note: 'a=b' },
      specialties: ['build'],
      priority: 2,
      max_tasks: 6,
    })
  })

  it('has nothing that says nothing, and is called as its host is', () => {
    expect(entryOf(nodeFromFlags('builder.lan.example', NONE))).toEqual({
      id: 'builder',
      host: 'builder.lan.example',
    })
    expect(nodeFromFlags('192.168.7.5', NONE).id).toBe('192.168.7.5')
  })

  it('gets what a look at the machine found', () => {
    const report = { os: 'macos', arch: 'arm64', cores: 10, memoryTotalMb: 32_768, tools: ['bash', 'git'] }
    expect(entryOf(describedNode(nodeFromFlags('mac', NONE), report as ProbeReport))).toMatchObject({
      os: 'macos',
      arch: 'arm64',
      cores: 10,
      memory: 32_768,
      capabilities: ['bash', 'git'],
    })
  })
})
