import { runnerPart } from '../runner/program-part.ts'
import { AGENT_TRANSPORT } from './runner/agent-transport.ts'
import { COMMAND } from './runner/command.ts'
import { FILES } from './runner/files.ts'
import { JOB } from './runner/job.ts'
import { JOB_USER } from './runner/job-user.ts'
import { MAIN_LOOP } from './runner/main-loop.ts'
import { OUTPUT } from './runner/output.ts'
import { PREPARE_JOB } from './runner/prepare-job.ts'
import { REQUESTS } from './runner/requests.ts'
import { SETTINGS } from './runner/settings.ts'
import { STOP_JOB } from './runner/stop-job.ts'

const PREAMBLE = `#!/bin/sh
# Deputy's runner. Takes work from the callback address, runs it as an ordinary user, reports what it did.
# Needs a POSIX shell, curl, and the usual small tools; nothing else.
`

/**
 * The program inside a machine: POSIX shell and curl. It takes work from the guest listener (see protocol.ts),
 * runs it as an ordinary user, and reports output, files and end, through any cut of the network.
 *
 * One file for the guest, put together from pieces that share their variables: functions first, the loop last.
 */
export const RUNNER = [
  PREAMBLE,
  SETTINGS,
  REQUESTS,
  AGENT_TRANSPORT,
  JOB_USER,
  COMMAND,
  PREPARE_JOB,
  STOP_JOB,
  OUTPUT,
  runnerPart('list-and-pack'),
  FILES,
  JOB,
  MAIN_LOOP,
].join('\n')
