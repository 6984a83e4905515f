import { AppError } from '../jobs/errors.ts'
import type { Database } from './database.ts'

/**
 * Never edit a released migration; add the next one. Times are milliseconds since 1970, JSON is text. Only `without
 * rowid` and `autoincrement` are specific to SQLite.
 */
const MIGRATIONS: readonly string[] = [
  `
  create table jobs (
    seq integer primary key autoincrement,
    id text not null unique,
    state text not null,
    title text not null,
    agent_type text not null,
    runtime_wanted text not null,
    runtime text not null,
    wants_machine text,
    machine_id text,
    parent_id text,
    priority integer not null,
    status_mode text not null,
    labels text not null,
    origin text not null,
    created_at integer not null,
    not_before integer not null default 0,
    provisioning_at integer,
    started_at integer,
    completed_at integer,
    timeout_seconds real not null,
    attempts integer not null default 0,
    cancel_requested_at integer,
    heartbeat_at integer,
    progress text,
    output_bytes integer not null default 0,
    stored_bytes integer not null default 0,
    position integer not null default 0,
    exit_code integer,
    signal text,
    error text,
    result text,
    phases text not null default '{}',
    idempotency_key text unique,
    manifest_hash text not null
  );
  -- Finished jobs are many and never queued: the queue's index holds the living alone.
  create index jobs_queue on jobs (state, runtime, priority desc, seq) where completed_at is null;
  create index jobs_state on jobs (state, seq);
  create index jobs_completed on jobs (completed_at) where completed_at is not null;
  create index jobs_parent on jobs (parent_id) where parent_id is not null;

  create table manifests (job_id text primary key, body text not null);

  create table labels (
    name text not null, value text not null, seq integer not null,
    primary key (name, value, seq)
  ) without rowid;

  create table output (
    job_id text not null, offset integer not null, stream integer not null, at integer not null, data blob not null,
    primary key (job_id, offset)
  ) without rowid;

  create table events (
    seq integer primary key autoincrement,
    job_id text not null, at integer not null, type text not null, data text not null
  );
  create index events_job on events (job_id, seq);

  create table machines (
    id text primary key, runtime text not null, job_id text, state text not null, details text not null,
    created_at integer not null, lease_until integer, attempts integer not null default 0,
    not_before integer not null default 0, last_error text
  );
  create index machines_job on machines (job_id);

  create table artifacts (
    job_id text not null, path text not null, sha256 text not null, size integer not null,
    primary key (job_id, path)
  ) without rowid;
  create index artifacts_blob on artifacts (sha256);
  `,
  'alter table jobs add column output_base integer not null default 0',
  // Rows in the order of arrival: when sorted by job, each piece of output dirtied a page of its own.
  `
  create table pieces (
    job_id text not null, offset integer not null, stream integer not null, at integer not null, data blob not null,
    unique (job_id, offset)
  );
  insert into pieces select job_id, offset, stream, at, data from output;
  drop table output;
  alter table pieces rename to output;
  `,
  `
  alter table jobs add column queue_until integer;
  create index jobs_queue_until on jobs (queue_until)
    where completed_at is null and state = 'pending' and queue_until is not null;
  `,
  // Blobs that are stored before the job that refers to them is written.
  `
  create table blob_holds (
    holder text not null, sha256 text not null, at integer not null,
    primary key (holder, sha256)
  ) without rowid;
  create index blob_holds_blob on blob_holds (sha256);
  `,
  'create table known_time (id integer primary key check (id = 1), at integer not null)',
  // A batch has no machine any more.
  `
  update jobs set machine_id = null where runtime = 'batch';
  delete from machines where runtime = 'batch';
  `,
  'create table reviews (job_id text primary key, body text not null) without rowid',
  'create table samples (at integer primary key, body text not null)',
  `
  alter table jobs add column node text;
  update jobs set node = json_extract(result, '$.executedOn.node')
    where json_extract(result, '$.executedOn.node') is not null;
  `,
  // Only of jobs that wait: the rows are deleted when the last needed job has succeeded.
  `
  create table needs (
    job_id text not null, needed_id text not null,
    primary key (job_id, needed_id)
  ) without rowid;
  create index needs_needed on needs (needed_id);
  `,
  // With SQLite there is one daemon, and its id is empty.
  `
  alter table jobs add column daemon text not null default '';
  alter table jobs add column wants_daemon text;
  alter table machines add column daemon text not null default '';
  `,
]

const SCHEMA_VERSION = MIGRATIONS.length

/** Upgrades a database, or rejects one that a newer Deputy has written. */
export const migrate = (database: Database, path: string): void => {
  const row = database.get('pragma user_version')
  const version = Number(row?.user_version ?? 0)
  if (version > SCHEMA_VERSION)
    throw new AppError(
      'conflict',
      `${path} has schema ${version}; this Deputy supports up to ${SCHEMA_VERSION}.`,
      {
        hint: 'A newer Deputy wrote it. Update this one (npm install -g deputy-mcp), or set DEPUTY_HOME to another directory.',
      },
    )
  for (let next = version; next < SCHEMA_VERSION; next++) {
    database.exec('begin immediate')
    try {
      database.exec(MIGRATIONS[next]!)
      database.exec(`pragma user_version = ${next + 1}`)
      database.exec('commit')
    } catch (error) {
      database.exec('rollback')
      throw error
    }
  }
}
