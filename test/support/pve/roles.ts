const COMMON = [
  'Datastore.Allocate',
  'Datastore.AllocateSpace',
  'Datastore.AllocateTemplate',
  'Datastore.Audit',
  'Group.Allocate',
  'Mapping.Audit',
  'Mapping.Modify',
  'Mapping.Use',
  'Permissions.Modify',
  'Pool.Allocate',
  'Pool.Audit',
  'Realm.Allocate',
  'Realm.AllocateUser',
  'SDN.Allocate',
  'SDN.Audit',
  'SDN.Use',
  'Sys.AccessNetwork',
  'Sys.Audit',
  'Sys.Console',
  'Sys.Incoming',
  'Sys.Modify',
  'Sys.PowerMgmt',
  'Sys.Syslog',
  'User.Modify',
  'VM.Allocate',
  'VM.Audit',
  'VM.Backup',
  'VM.Clone',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Cloudinit',
  'VM.Config.Disk',
  'VM.Config.HWType',
  'VM.Config.Memory',
  'VM.Config.Network',
  'VM.Config.Options',
  'VM.Console',
  'VM.Migrate',
  'VM.PowerMgmt',
  'VM.Snapshot',
  'VM.Snapshot.Rollback',
]

const AGENT_9 = [
  'VM.GuestAgent.Audit',
  'VM.GuestAgent.FileRead',
  'VM.GuestAgent.FileSystemMgmt',
  'VM.GuestAgent.FileWrite',
  'VM.GuestAgent.Unrestricted',
  'VM.Replicate',
]

export const ALL_PRIVILEGES: readonly string[] = [...COMMON, ...AGENT_9, 'VM.Monitor']

/** VM.Monitor was dropped in 9.0, where the rights on the agent came instead. */
export const knownPrivileges = (major: number): readonly string[] =>
  major >= 9 ? [...COMMON, ...AGENT_9] : [...COMMON, 'VM.Monitor']

/** What a call of the guest agent needs, by version. */
export const agentRight = (
  major: number,
  right: 'Audit' | 'FileRead' | 'FileWrite' | 'Unrestricted',
): string[] =>
  major >= 9 ? [...new Set([`VM.GuestAgent.${right}`, 'VM.GuestAgent.Unrestricted'])] : ['VM.Monitor']
