import type { Store } from '../ports.ts'
import { lastEvent, readEvents } from './events-table.ts'
import type { JobCounts } from './job-counts.ts'
import { createJobStore } from './job-store.ts'
import * as jobs from './jobs-table.ts'
import * as machines from './machines-table.ts'
import * as needs from './needs-table.ts'
import { appendOutput, readOutput } from './output-table.ts'
import { expiredJobs, holdBlob, isBlobUsed, releaseStaleBlobs } from './retention.ts'
import { changeReview, getReview } from './reviews-table.ts'
import { measureMinute, readSamples, saveSample } from './samples-table.ts'
import { get, run, type Work } from './sql.ts'

/** Runs the statements of the store on a database. Both methods may run the work again after a failure. */
export interface StoreDatabase {
  /** Sees committed rows only. */
  read<T>(work: () => Work<T>): Promise<T>
  /** Runs the work in a transaction, in the order of the calls. A lazy write may be lost in a power cut. */
  write<T>(work: () => Work<T>, options?: { lazy?: boolean | undefined }): Promise<T>
  /** Returns unused space to the file system. */
  compact(): Promise<void>
  /** Resolves when everything queued so far is on disk. */
  flush(): Promise<void>
  close(): Promise<void>
}

export interface StoreIdentity {
  /** Id of this daemon in the records that it owns; empty where it is the only one. */
  readonly daemon: string
  readonly counts: JobCounts
  /** Asked in the transaction of a claim; absent: always. */
  mayClaim?(): Work<boolean>
}

export const createStore = (database: StoreDatabase, identity: StoreIdentity): Store => {
  const { read, write } = database
  const { daemon } = identity
  return {
    daemon,
    ...createJobStore(database, identity),

    settledNeeds: () => read(needs.settledNeeds),
    neededJobs: () => read(needs.neededJobs),
    unfinishedNeeds: id => read(() => needs.unfinishedNeeds(id)),
    waitingJob: id => read(() => needs.waitingJob(id)),
    releaseJob: (id, release) => write(() => needs.releaseJob(id, release)),

    appendOutput: (id, batch, keep) => write(() => appendOutput(id, batch, keep)),
    readOutput: (id, from, maxBytes) => read(() => readOutput(id, from, maxBytes)),

    events: query => read(() => readEvents(query)),
    lastEvent: () => read(lastEvent),

    measureMinute: at => read(() => measureMinute(at)),
    saveSample: (sample, keepFrom) => write(() => saveSample(sample, keepFrom), { lazy: true }),
    samples: since => read(() => readSamples(since)),

    getReview: id => read(() => getReview(id)),
    changeReview: (id, change, event) => write(() => changeReview(id, change, event)),

    insertMachine: async machine => void (await write(() => machines.insertMachine(daemon, machine))),
    getMachine: id => read(() => machines.getMachine(id)),
    listMachines: () => read(machines.listMachines),
    ownMachines: () => read(() => machines.ownMachines(daemon)),
    updateMachine: (id, change) => write(() => machines.updateMachine(id, change)),
    markDestroying: id => write(() => machines.markDestroying(id)),
    markIdleDestroying: id => write(() => machines.markIdleDestroying(id)),
    deleteMachine: (id, report) => {
      function* work(): Work<void> {
        if (report) yield* jobs.update(report.jobId, { phases: report.phases }, report.event)
        yield* machines.deleteMachine(id)
      }
      // After a power cut the record may be back; the machine is then found to be gone again.
      return write(work, { lazy: true })
    },

    expiredJobs: policy => read(() => expiredJobs(policy)),
    compact: database.compact,
    isBlobUsed: sha256 => read(() => isBlobUsed(sha256)),
    // Lazy, because a power cut that loses the hold also loses the write it protects.
    holdBlob: (sha256, holder) => write(() => holdBlob(sha256, holder, Date.now()), { lazy: true }),
    releaseStaleBlobs: before => write(() => releaseStaleBlobs(before), { lazy: true }),

    knownTime: () => read(knownTime),
    saveKnownTime: at => write(() => saveKnownTime(at), { lazy: true }),

    flush: database.flush,
    close: database.close,
  }
}

function* knownTime(): Work<number | undefined> {
  const { row } = yield get('select at from known_time')
  return row && Number(row.at)
}

function* saveKnownTime(at: number): Work<void> {
  yield run(
    'insert into known_time (id, at) values (1, ?) on conflict (id) do update set at = excluded.at',
    Math.round(at),
  )
}
