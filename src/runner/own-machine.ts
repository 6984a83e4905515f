import { runnerPart } from './program-part.ts'

const withoutComments = (name: string): string => runnerPart(name).replace(/^#.*\n/gm, '')

/** For machines that hold one workspace, at a fixed path: the shell that reads the runner, and the way in for inputs. */
export const ENTER = withoutComments('enter')
export const UNPACK = withoutComments('unpack')
