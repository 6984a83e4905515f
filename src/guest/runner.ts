import { COMMAND } from './runner/command.ts'
import { ENDING } from './runner/ending.ts'
import { FILES } from './runner/files.ts'
import { JOB } from './runner/job.ts'
import { MAILBOX } from './runner/mailbox.ts'
import { OUTPUT } from './runner/output.ts'
import { REQUESTS } from './runner/requests.ts'
import { ROOM } from './runner/room.ts'
import { SETTINGS } from './runner/settings.ts'
import { USER } from './runner/user.ts'
import { WORK } from './runner/work.ts'

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
  MAILBOX,
  USER,
  COMMAND,
  ROOM,
  ENDING,
  OUTPUT,
  FILES,
  JOB,
  WORK,
].join('\n')
