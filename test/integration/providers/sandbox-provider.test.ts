import { leftovers, SANDBOXES } from '../../support/sandboxes.ts'
import { describeProviderContract } from './provider-contract.ts'

for (const { name, subject, skip } of SANDBOXES.slice(0, 2))
  describeProviderContract(`sandbox (${name})`, { ...subject, skip, leftovers })
