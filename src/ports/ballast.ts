/** Reserved disk space, so that the end of jobs can still be recorded on a full disk. */
export interface Ballast {
  /** Frees the space for the next write; false when it is already free. */
  release(): boolean
  /** Reserves the space again; false while the disk has no room. */
  restore(): boolean
}
