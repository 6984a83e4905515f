/** What the emulator knows of a guest that is being started. */
export interface GuestSpec {
  readonly vmid: number
  readonly node: string
  readonly config: Readonly<Record<string, string>>
  /** Content of the CD-ROM images that are attached. */
  readonly cdroms: readonly Buffer[]
  /** Serial number of the SMBIOS, decoded. */
  readonly serial: string | undefined
  /** Whether the firewall lets the guest connect, at this moment. */
  mayConnect(destination: { readonly host: string; readonly port: number }): boolean
  /** Tells that the guest switched itself off. */
  poweredOff(): void
}

/** How guests are run: not at all, as local processes, or in QEMU. */
export interface GuestDriver {
  start(spec: GuestSpec): Promise<Guest>
  /** The disk of a machine that was never started is what this image holds. */
  imported?(vmid: number, image: Buffer): Promise<void>
  /** The disk of a new machine is that of another: on top of it, or a copy. */
  cloned?(clone: Clone): Promise<void>
  /** The machine is gone for good, and its disk with it. */
  destroyed?(vmid: number): Promise<void>
}

interface Clone {
  readonly from: number
  readonly to: number
  readonly full: boolean
}

export interface Guest {
  /** Pulls the plug; resolves when nothing of the guest runs any more. */
  stop(): Promise<void>
  /** Asks the system to shut down; false when it does not listen. */
  shutdown(): Promise<boolean>
  /** Absent while no agent answers. */
  agent(): GuestAgent | undefined
}

export interface GuestAgent {
  exec(argv: readonly string[], input: Buffer | undefined): Promise<number>
  /** Undefined for an unknown process. */
  execStatus(pid: number): ExecStatus | undefined | Promise<ExecStatus | undefined>
  /** Rejects with the words of the agent. */
  readFile(path: string): Promise<Buffer>
  writeFile(path: string, content: Buffer): Promise<void>
}

export interface ExecStatus {
  readonly exited: boolean
  readonly exitcode?: number
  readonly signal?: number
  readonly out: Buffer
  readonly err: Buffer
}
