import { record } from '../shape/answer-format.ts'
import * as p from './common-params.ts'
import { elevated, type Toolset, tool } from './define-row.ts'

const guest = { vmid: p.vmid, node: p.node, type: p.guestType }

// biome-ignore format: it is a table
export const consoles: Toolset = {
  name: 'proxmox-console',
  about: 'Tickets for consoles of guests, for the user to open; handed over by file.',
  tools: [
    tool('proxmox_console_vnc', 'VNC ticket for a guest, valid for seconds, kept in a file.', { ...guest, websocket: p.bool() },
      elevated('POST /nodes/{node}/{type}/{vmid}/vncproxy', 'vmid* node type websocket', record('port user upid'))),
    tool('proxmox_console_term', 'Terminal ticket for a guest, valid for seconds, kept in a file.', guest,
      elevated('POST /nodes/{node}/{type}/{vmid}/termproxy', 'vmid* node type', record('port user upid'))),
    tool('proxmox_console_spice', 'SPICE connection file for a guest, for remote-viewer.', { ...guest, proxy: p.text('address of the node') },
      elevated('POST /nodes/{node}/{type}/{vmid}/spiceproxy', 'vmid* node type proxy', record('host proxy tls-port type'))),
  ],
}
