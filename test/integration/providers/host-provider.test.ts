import { describeProviderContract } from './provider-contract.ts'

describeProviderContract('host', {
  module: 'providers/host/host-provider.js',
  factory: 'createHostProvider',
  options: { graceSeconds: 1, access: { allowed: true } },
})
