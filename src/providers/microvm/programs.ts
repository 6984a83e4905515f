import { readFileSync } from 'node:fs'

/** The programs of a VM and of its start. They are read once, and hold nothing of a job. */
const read = (name: string): string => readFileSync(new URL(`./program/${name}`, import.meta.url), 'utf8')

export const INIT = read('init.sh')
export const AGENT = read('agent.pl')
export const MEMORY = read('memory.pl')
export const LAUNCH = read('launch.sh')
export const KERNEL = read('kernel.sh')
