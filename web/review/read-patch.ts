import { deputy, readBytes } from '../deputy.ts'
import { type FilePatch, parsePatch } from './patch.ts'

/** The changes of a job, file by file. */
export const readPatch = async (id: string): Promise<FilePatch[]> =>
  parsePatch(await (await readBytes(await deputy.openPatch(id))).text())
