import { describeContainerContract } from './container-contract.ts'

await describeContainerContract('podman')
