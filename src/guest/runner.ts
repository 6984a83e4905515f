import { runnerPart } from '../runner/program-part.ts'
import { guestPart } from './guest-part.ts'

/** The process that reads the order and becomes the job. */
export const COMMAND = guestPart('command')

/**
 * The program inside a machine: POSIX shell and curl. It takes orders from the guest listener (see protocol.ts), runs
 * them as an ordinary user, and sends output, files and exit status through network outages. One file for the guest,
 * put together from parts that share their variables: functions first, the main loop last.
 */
export const RUNNER = [
  '#!/bin/sh\n# The runner of Deputy in a VM. Needs a POSIX shell, curl, and the usual small tools.\n',
  guestPart('settings'),
  guestPart('requests'),
  guestPart('agent-transport'),
  guestPart('job-user'),
  COMMAND,
  guestPart('prepare-job'),
  guestPart('stop-job'),
  guestPart('output'),
  runnerPart('list-and-pack'),
  guestPart('send-files'),
  guestPart('job'),
  guestPart('main-loop'),
].join('\n')
