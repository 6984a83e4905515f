import { describeRuntimeContract } from './runtime-contract.ts'

describeRuntimeContract('host', {
  module: 'providers/host/host-runtime.js',
  factory: 'createHostRuntime',
  options: { graceSeconds: 1 },
})
