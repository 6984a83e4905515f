import type { Artifact } from '../jobs/job.ts'
import { jobPath } from './job-calls.ts'
import type { Answer, Connection } from './transport.ts'

/** A stored file that is being downloaded. */
export type Download = Pick<Answer, 'size' | 'bytes'>

/** The calls that carry files: workspaces, artifacts, patches and output as it was printed. */
export const createFileCalls = ({ transport, retry }: Connection) => {
  const download = (path: string, signal: AbortSignal | undefined): Promise<Download> =>
    transport.open({ path, signal })

  return {
    /** The kept bytes of both streams in the order they were printed, without markers for dropped bytes. */
    rawOutput: (id: string, signal?: AbortSignal) => download(`${jobPath(id)}/output?raw=1`, signal),

    artifacts: async (id: string): Promise<readonly Artifact[]> =>
      (await retry<{ artifacts: readonly Artifact[] }>({ path: `${jobPath(id)}/artifacts` })).artifacts,

    openArtifact: (id: string, path: string, signal?: AbortSignal) =>
      download(`${jobPath(id)}/artifacts/${path.split('/').map(encodeURIComponent).join('/')}`, signal),

    openPatch: (id: string, signal?: AbortSignal) => download(`${jobPath(id)}/patch`, signal),

    putBlob: (
      body: AsyncIterable<Uint8Array>,
      signal?: AbortSignal,
    ): Promise<{ sha256: string; size: number }> =>
      transport.json({
        method: 'PUT',
        path: '/api/blobs',
        body,
        headers: { 'content-type': 'application/octet-stream' },
        answerMs: 3_600_000,
        signal,
      }),
  }
}
