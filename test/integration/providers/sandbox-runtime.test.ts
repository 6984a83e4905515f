import { leftovers, SANDBOXES } from '../../support/sandboxes.ts'
import { describeRuntimeContract } from './runtime-contract.ts'

for (const { name, subject, skip } of SANDBOXES.slice(0, 2))
  describeRuntimeContract(`sandbox (${name})`, { ...subject, skip, leftovers })
