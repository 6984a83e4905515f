import { existsSync } from 'node:fs'
import { describeRuntimeContract } from './contract.ts'

const module = 'runtimes/sandbox/index.js'
const factory = 'createSandboxRuntime'

describeRuntimeContract('sandbox (bubblewrap)', {
  module,
  factory,
  options: { backend: 'bwrap', graceSeconds: 1, spare: 1 },
  skip: existsSync('/usr/bin/bwrap') ? undefined : 'bubblewrap is not installed',
})
