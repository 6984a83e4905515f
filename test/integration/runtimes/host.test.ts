import { describeRuntimeContract } from './contract.ts'

describeRuntimeContract('host', {
  module: 'runtimes/host/index.js',
  factory: 'createHostRuntime',
  options: { graceSeconds: 1 },
})
