/** Where a VM is: a VMID is unique in the cluster, and the VM may move to another node. */
export interface VmRef {
  readonly node: string
  readonly vmid: number
}
