/** Where jobs run; decides which rights are needed and on what. */
export interface Place {
  /** Major version of Proxmox VE: 9 split the rights on the guest agent. */
  readonly major: number
  readonly template: number
  readonly pool: string
  readonly diskStorage: string
  readonly seedStorage?: string
  /** `vmbr0`, or `zone/vnet` of the SDN. */
  readonly network?: string
}

export interface Needed {
  readonly path: string
  readonly privileges: readonly string[]
  readonly why: string
}

/** The least that a token needs from clone to destroy. Nothing on `/`, nothing that begins with `Sys.`. */
export const privilegeTable = ({
  major,
  template,
  pool,
  diskStorage,
  seedStorage,
  network,
}: Place): Needed[] => [
  { path: `/vms/${template}`, privileges: ['VM.Clone', 'VM.Audit'], why: 'to clone the template' },
  {
    path: `/pool/${pool}`,
    privileges: [...JOB_PRIVILEGES, ...agentPrivileges(major), 'Pool.Audit'],
    why: 'to configure, start, watch and destroy the machines of jobs',
  },
  {
    path: `/storage/${diskStorage}`,
    privileges: ['Datastore.AllocateSpace', 'Datastore.Audit'],
    why: 'to make the disks of the clones',
  },
  ...(seedStorage === undefined
    ? []
    : [
        {
          path: `/storage/${seedStorage}`,
          privileges: ['Datastore.AllocateTemplate', 'Datastore.Audit', 'Datastore.Allocate'],
          why: 'to upload and remove seed images; give it a storage of its own',
        },
      ]),
  ...(network === undefined || major < 8
    ? []
    : [{ path: networkPath(network), privileges: ['SDN.Use'], why: 'to connect the machines' }]),
]

export const agentPrivileges = (major: number): readonly string[] =>
  major >= 9
    ? [
        'VM.GuestAgent.Audit',
        'VM.GuestAgent.FileRead',
        'VM.GuestAgent.FileWrite',
        'VM.GuestAgent.Unrestricted',
      ]
    : ['VM.Monitor']

const JOB_PRIVILEGES = [
  'VM.Allocate',
  'VM.Audit',
  'VM.PowerMgmt',
  'VM.Config.Options',
  'VM.Config.CPU',
  'VM.Config.Memory',
  'VM.Config.Disk',
  'VM.Config.CDROM',
  'VM.Config.Cloudinit',
  'VM.Config.Network',
  'VM.Config.HWType',
]

const networkPath = (network: string): string =>
  `/sdn/zones/${network.includes('/') ? network : `localnetwork/${network}`}`
