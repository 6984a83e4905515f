import type { Manifest } from '../../jobs/manifest.ts'
import { WORKSPACE } from '../../jobs/paths.ts'
import { parseSize } from '../../jobs/sizes.ts'
import { ENTER } from '../../runner/own-machine.ts'
import type { EngineKind } from './container-engine.ts'
import { covers } from './image-reference.ts'
import { IDLE } from './programs.ts'
import type { LocalImage } from './pull-image.ts'
import { workspaceStorage } from './workspace-alias.ts'

/** Where the runner keeps its records: a tmpfs, so that nothing of a job is on the disk of the engine. */
export const RUNNER_HOME = '/run/deputy'

/** The labels prove whose container it is. */
export const OWNER_LABEL = 'deputy.owner'
export const MACHINE_LABEL = 'deputy.machine'

/** Starts the shell that reads the runner. */
export const enterArgv = ({ owner, machineId }: Pick<SpecRequest, 'owner' | 'machineId'>): string[] => [
  ...['sh', '-c', ENTER, 'sh', `.cache/deputy/${owner}/work/${machineId}`, WORKSPACE],
]

export const containerName = (machineId: string): string => `deputy-${machineId}`

export interface ContainerDefaults {
  readonly cpu: number
  /** Bytes. */
  readonly memory: number
  readonly disk: number
  readonly processes: number
}

export interface SpecRequest {
  readonly engine: EngineKind
  readonly machineId: string
  readonly owner: string
  readonly image: LocalImage
  /** Users by pattern of an image name. */
  readonly users: Readonly<Record<string, string>>
  readonly runtimeClass?: string | undefined
  readonly defaults: ContainerDefaults
  /** Absent for a container that is created ahead. */
  readonly manifest?: Manifest | undefined
  readonly network: NonNullable<Manifest['network']>
}

const SPARE_BYTES = 64 * 1024 * 1024

/** The body of a create request: everything closed but what the job asked for. */
export const containerSpec = (request: SpecRequest): Record<string, unknown> => {
  const { image, manifest, defaults } = request
  const resources = manifest?.resources
  const disk = resources?.disk === undefined ? defaults.disk : parseSize(resources.disk)
  const memory = resources?.memory === undefined ? defaults.memory : parseSize(resources.memory)
  const labels = { [OWNER_LABEL]: request.owner, [MACHINE_LABEL]: request.machineId }
  const { Tmpfs, Mounts } = workspaceStorage(request.engine, {
    volume: containerName(request.machineId),
    volumesOfImage: image.volumes,
    options: tmpfs(disk),
    labels,
  })
  return {
    Image: image.id,
    User: userOf(image, request.users),
    Entrypoint: ['sh', '-c', IDLE],
    Cmd: ['sh', ...enterArgv(request)],
    // For the first shell.
    OpenStdin: true,
    StdinOnce: true,
    Env: [`HOME=${RUNNER_HOME}`],
    WorkingDir: '/',
    Hostname: 'job',
    Labels: labels,
    HostConfig: {
      // The jobs of a list of domains reach their proxy over the engine, not over a network.
      NetworkMode: request.network === 'full' ? 'default' : 'none',
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      Mounts,
      Tmpfs: {
        ...Tmpfs,
        '/tmp': `exec,${tmpfs(disk)}`,
        [RUNNER_HOME]: `noexec,${tmpfs(disk + SPARE_BYTES)}`,
      },
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round((resources?.cpu ?? defaults.cpu) * 1e9),
      PidsLimit: defaults.processes,
      Init: true,
      IpcMode: 'private',
      CgroupnsMode: 'private',
      LogConfig: { Type: 'none' },
      RestartPolicy: { Name: 'no' },
      ...(request.runtimeClass !== undefined && { Runtime: request.runtimeClass }),
      ...(manifest?.gpus !== undefined && { DeviceRequests: [gpuRequest(manifest.gpus)] }),
    },
  }
}

/** Writable for the user of the image, whatever its number is: nobody else is in the container. */
const tmpfs = (size: number): string => `rw,nosuid,nodev,size=${size},mode=1777`

const gpuRequest = (gpus: string): Record<string, unknown> => ({
  Driver: '',
  Count: gpus === 'all' ? -1 : Number(gpus),
  Capabilities: [['gpu']],
})

const ROOT = /^(?:|0|root)(?::.*)?$/

/** As configured for the image, or the user that the image names; never root unless it is configured. */
const userOf = (image: LocalImage, users: Readonly<Record<string, string>>): string => {
  const pattern = Object.keys(users).find(one => covers(one, image.name))
  if (pattern !== undefined) return users[pattern] ?? ''
  return ROOT.test(image.user) ? '1000:1000' : image.user
}

/** How the jobs of a container are isolated, apart from their network. */
export const isolationOf = (request: SpecRequest, engine: string): string[] => [
  `container (${engine})`,
  `image ${request.image.name} ${request.image.digest ?? request.image.id}`,
  kernelOf(request.runtimeClass),
  `user ${userOf(request.image, request.users)}`,
  'no capabilities',
  'seccomp profile of the engine',
  'read-only root',
]

export const describeNetwork = (network: SpecRequest['network']): string => {
  if (network === 'none') return 'no network'
  return network === 'full' ? 'network of the engine' : `network: only ${network.join(', ')}`
}

/** Whether an OCI runtime starts a VM for each container. */
export const hasOwnKernel = (runtimeClass = ''): boolean => /kata|krun/.test(runtimeClass)

const kernelOf = (runtimeClass = ''): string => {
  if (hasOwnKernel(runtimeClass)) return `own kernel (${runtimeClass})`
  if (/runsc|gvisor/.test(runtimeClass)) return `kernel in user space (${runtimeClass})`
  return 'kernel shared with the engine'
}
