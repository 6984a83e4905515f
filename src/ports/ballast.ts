/** Disk space that is held ready for what must be written on a full disk: how jobs ended. */
export interface Ballast {
  /** Gives the space to the next write; false when it is given away already. */
  release(): boolean
  /** Takes the space again when there is room; false while there is none. */
  restore(): boolean
}
