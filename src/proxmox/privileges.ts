/** The resources that jobs use. They determine the required privileges and paths. */
export interface PrivilegeScope {
  /** Major version of Proxmox VE: version 9 split the privileges for the guest agent. */
  readonly major: number
  readonly template: number
  readonly pool: string
  /** Storages of the template's disks. The disks of its clones go there too. */
  readonly diskStorages: readonly string[]
  /** Storages of the images in the template's CD-ROM drives. Cloning needs read access to them. */
  readonly imageStorages?: readonly string[]
  readonly seedStorage?: string
  /** A bridge of the nodes, or an SDN vnet if `zone` is set. */
  readonly bridge?: string
  readonly zone?: string
}

export interface RequiredPrivileges {
  /** A role always has the same privileges, because users share it. */
  readonly role: string
  readonly path: string
  readonly privileges: readonly string[]
  readonly why: string
}

/** The minimum privileges for the whole life of a machine. None on `/`, and no `Sys.` privilege. */
export const privilegeTable = ({
  major,
  template,
  pool,
  diskStorages,
  imageStorages = [],
  seedStorage,
  bridge,
  zone = 'localnetwork',
}: PrivilegeScope): RequiredPrivileges[] => [
  {
    role: 'DeputyTemplate',
    path: `/vms/${template}`,
    privileges: ['VM.Clone', 'VM.Audit'],
    why: 'to clone the template',
  },
  {
    role: 'DeputyJobs',
    path: `/pool/${pool}`,
    privileges: [...JOB_PRIVILEGES, ...agentPrivileges(major), 'Pool.Audit'],
    why: 'to configure, start, watch and destroy the machines of jobs',
  },
  ...diskStorages.map(storage => ({
    role: 'DeputyDisks',
    path: `/storage/${storage}`,
    privileges: ['Datastore.AllocateSpace', 'Datastore.Audit'],
    why: 'to make the disks of the clones',
  })),
  ...imageStorages.map(storage => ({
    role: 'DeputyImages',
    path: `/storage/${storage}`,
    privileges: ['Datastore.Audit'],
    why: 'to clone the CD-ROM drives of the template',
  })),
  ...(seedStorage === undefined
    ? []
    : [
        {
          role: 'DeputySeeds',
          path: `/storage/${seedStorage}`,
          privileges: SEED_PRIVILEGES,
          why: 'to upload and remove seed images; give it a storage of its own',
        },
      ]),
  ...(bridge === undefined || major < 8
    ? []
    : [
        {
          role: 'DeputyNetwork',
          path: `/sdn/zones/${zone}/${bridge}`,
          privileges: ['SDN.Use'],
          why: 'to connect the machines',
        },
      ]),
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

export const SEED_PRIVILEGES = ['Datastore.AllocateTemplate', 'Datastore.Audit', 'Datastore.Allocate']

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
