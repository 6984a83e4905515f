import { constants } from 'node:os'

const NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

export const signalName = (number: number): string => NAMES.get(number) ?? `SIG${number}`
