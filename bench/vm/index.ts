import { callbacksBench } from '../callbacks/bench.ts'
import type { Bench } from '../figure.ts'
import { controlPlaneBench } from './control-plane.ts'
import { vmJobsBench } from './jobs.ts'
import { warmBench } from './warm.ts'

export const machineBenches: Bench[] = [callbacksBench, controlPlaneBench, vmJobsBench, warmBench]
