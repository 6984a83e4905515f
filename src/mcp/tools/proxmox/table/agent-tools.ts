import { agentExec, agentStatus } from '../composite/agent-exec.ts'
import { readFile, writeFile } from '../composite/agent-file.ts'
import { guestTime, interfaces, result, value } from '../composite/agent-info.ts'
import { lxcExec } from '../composite/lxc-exec.ts'
import { done, record, rows } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { elevated, read, type Toolset, tool } from './define-row.ts'

const guest = { vmid: p.vmid, node: p.node }
const AT = 'vmid* node'
const file = p.text('path inside the guest', { maxLength: 4096 })

// biome-ignore format: it is a table
export const agent: Toolset = {
  name: 'proxmox-agent',
  about: 'Inside guests: QEMU guest agent (information, commands, files, freeze, power, passwords) and commands in containers.',
  tools: [
    tool('proxmox_agent_info', 'What the guest agent of a VM knows.', guest, {
      ping: read('POST /nodes/{node}/qemu/{vmid}/agent/ping', AT, done),
      osinfo: read('GET /nodes/{node}/qemu/{vmid}/agent/get-osinfo', AT, record('', result)),
      fsinfo: read('GET /nodes/{node}/qemu/{vmid}/agent/get-fsinfo', AT, rows('mountpoint type name used-bytes:gib total-bytes:gib', result)),
      network_interfaces: read('GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces', AT, rows('name hardware-address addresses', interfaces)),
      time: read('GET /nodes/{node}/qemu/{vmid}/agent/get-time', AT, record('', guestTime)),
      timezone: read('GET /nodes/{node}/qemu/{vmid}/agent/get-timezone', AT, record('', result)),
    }),

    tool('proxmox_agent_hw', 'Hardware and users as the guest sees them.', guest, {
      memory_blocks: read('GET /nodes/{node}/qemu/{vmid}/agent/get-memory-blocks', AT, rows('phys-index:int online:bool can-offline:bool', result)),
      vcpus: read('GET /nodes/{node}/qemu/{vmid}/agent/get-vcpus', AT, rows('logical-id:int online:bool can-offline:bool', result)),
      memory_block_info: read('GET /nodes/{node}/qemu/{vmid}/agent/get-memory-block-info', AT, record('size:mib', result)),
      hostname: read('GET /nodes/{node}/qemu/{vmid}/agent/get-host-name', AT, record('host-name', result)),
      users: read('GET /nodes/{node}/qemu/{vmid}/agent/get-users', AT, rows('user domain login-time:time', result)),
    }),

    tool('proxmox_agent_exec', 'Run a command in a VM and get its output: a line for /bin/sh, or with `args` a program.', {
      ...guest,
      command: p.text('shell line, or program when args are given'),
      args: p.strings('no shell'),
      'input-data': p.text('stdin', { maxLength: 65_536 }),
      'capture-output': p.bool('default true; false returns the pid at once'),
      timeout: p.int(0, 50, 'seconds to wait, default 30'),
      pid: p.int(1, 2_147_483_647),
    }, {
      exec: elevated('POST /nodes/{node}/qemu/{vmid}/agent/exec', `${AT} command* args input-data capture-output timeout`, record(), { run: agentExec }),
      status: elevated('GET /nodes/{node}/qemu/{vmid}/agent/exec-status', `${AT} pid*`, record(),
        { run: agentStatus, note: 'The agent hands the result over once only.' }),
    }),

    tool('proxmox_agent_file', 'Read and write files in a VM.', {
      ...guest, file, content: p.text('up to 46080 bytes', { maxLength: 61_440 }), encode: p.bool('false: content is base64 already'),
    }, {
      read: elevated('GET /nodes/{node}/qemu/{vmid}/agent/file-read', `${AT} file*`, record(), { run: readFile }),
      write: elevated('POST /nodes/{node}/qemu/{vmid}/agent/file-write', `${AT} file* content* encode`, record(), { run: writeFile }),
    }),

    tool('proxmox_agent_freeze', 'File systems of a VM: freeze, thaw, trim.', guest, {
      status: read('POST /nodes/{node}/qemu/{vmid}/agent/fsfreeze-status', AT, record('', value)),
      freeze: elevated('POST /nodes/{node}/qemu/{vmid}/agent/fsfreeze-freeze', AT, record('', value)),
      thaw: elevated('POST /nodes/{node}/qemu/{vmid}/agent/fsfreeze-thaw', AT, record('', value)),
      fstrim: elevated('POST /nodes/{node}/qemu/{vmid}/agent/fstrim', AT, record('', result)),
    }),

    tool('proxmox_agent_power', 'Power of a VM through its agent.', guest, {
      shutdown: elevated('POST /nodes/{node}/qemu/{vmid}/agent/shutdown', AT, done),
      suspend_disk: elevated('POST /nodes/{node}/qemu/{vmid}/agent/suspend-disk', AT, done),
      suspend_ram: elevated('POST /nodes/{node}/qemu/{vmid}/agent/suspend-ram', AT, done),
      suspend_hybrid: elevated('POST /nodes/{node}/qemu/{vmid}/agent/suspend-hybrid', AT, done),
    }),

    tool('proxmox_agent_user', 'Set the password of a user in a VM.', {
      ...guest, username: p.text(undefined, { pattern: /^[^\s:]{1,64}$/ }), password: p.secret(undefined, { maxLength: 1024 }),
      crypted: p.bool('is a hash'),
    }, {
      set_password: elevated('POST /nodes/{node}/qemu/{vmid}/agent/set-user-password', `${AT} username* password* crypted`, done),
    }),

    tool('proxmox_lxc_exec', 'Run a shell command in a container, over SSH to its node.', {
      ...guest, command: p.text(undefined, { maxLength: 8000 }), timeout: p.int(1, 120, 'seconds, default 30'),
    }, elevated('POST /nodes/{node}/lxc/{vmid}/exec', `${AT} command* timeout`, record(), { run: lxcExec, note: 'Proxmox has no API for it: `pct exec` through the system ssh, set up by PROXMOX_SSH_*.' })),
  ],
}
