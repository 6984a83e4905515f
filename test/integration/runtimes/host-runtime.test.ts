import { describeRuntimeContract } from './runtime-contract.ts'

describeRuntimeContract('host', {
  module: 'runtimes/host/host-runtime.js',
  factory: 'createHostRuntime',
  options: { graceSeconds: 1 },
})
