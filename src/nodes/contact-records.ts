import { toAppError } from '../jobs/errors.ts'
import type { AddressResolver } from './addresses/address-resolver.ts'
import type { createCircuitBreakers } from './circuit-breaker.ts'
import type { ClusterNode } from './inventory.ts'
import type { SshTarget } from './ssh/ssh-arguments.ts'
import { sshFailureOf } from './ssh/ssh-errors.ts'
import type { Ssh } from './ssh/ssh-session.ts'

interface ContactRecordsOptions {
  readonly ssh: Ssh
  readonly breakers: ReturnType<typeof createCircuitBreakers>
  addresses(): AddressResolver
}

/** Records how probes and commands ended: for the circuit breaker of the node and for the choice of its address. */
export const createContactRecords = ({ ssh, breakers, addresses }: ContactRecordsOptions) => {
  const trustAddress = (node: ClusterNode, target: SshTarget | undefined): void => {
    if (target?.address !== undefined) addresses().recordSuccess(node.host, target.address)
  }

  /** Distrusts an address after a failure to connect, but not after a failed login. */
  const notReached = (node: ClusterNode, error: unknown, target: SshTarget | undefined): void => {
    const failure = sshFailureOf(error)
    if (failure !== 'unreachable' && failure !== 'timed-out') return
    if (target?.address !== undefined) addresses().recordFailure(node.host, target.address)
    ssh.reset(node.id)
  }

  return {
    reached: (node: ClusterNode, target: SshTarget): void => {
      breakers.recordReachable(node.id)
      trustAddress(node, target)
    },
    notReached,
    succeeded: (node: ClusterNode, target?: SshTarget): void => {
      breakers.recordSuccess(node.id)
      trustAddress(node, target)
    },
    failed: (node: ClusterNode, error: unknown, target?: SshTarget, startedAt?: number): void => {
      breakers.recordFailure(node.id, toAppError(error).message, {
        cause: sshFailureOf(error) === undefined ? 'node' : 'connection',
        ...(startedAt !== undefined && { startedAt }),
      })
      notReached(node, error, target)
    },
  }
}
