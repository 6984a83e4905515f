import { CLEAN_UP } from './program/clean-up.ts'
import { FOLLOW } from './program/follow.ts'
import { PROCESSES } from './program/processes.ts'
import { START } from './program/start.ts'
import { SUPERVISE } from './program/supervise.ts'

/**
 * The program that holds a command on a node: POSIX sh, nothing installed, sent whole with every request. Only its
 * last line calls anything, so a request cut in the middle does nothing.
 *
 * A command has a directory of its own, made with one `mkdir`: whoever makes it starts the command, everybody else
 * follows, which is what makes a start happen at most once. The supervisor is a subshell that outlives the
 * connection. Output goes to files; a follower sends it in frames and notes in `index` the order it chose, so that
 * one number, the bytes sent so far, is enough to go on from after a cut.
 *
 * Frames on stdout after the line `<mark>`:
 *   s 0|1            found running | started now       o N / e N   N bytes of stdout / stderr follow
 *   x CODE HOW FROM TO   ended                         d N         N bytes were printed and not kept
 *   h                still there
 *   l WHY            lost, or may have run             n WHY       did not start, and never will under this id
 *   q                another follower took over        f WHY       could not be started: something is wrong there
 * and in answer to the short verbs:
 *   k N PIDS         cancel: N processes survived      k ID PIDS   remove, release: these survived, nothing is deleted
 *   g ID             remove, release: it is gone       w ID TIME   claims: a workspace, and when it was made
 *   j ID STATE TIME  list: a command, running, ended or lost
 */
const SOURCE = `
umask 077
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
for d in /opt/homebrew/bin "$HOME/.local/bin" "$HOME/.cargo/bin"; do
  [ -d "$d" ] && case ":$PATH:" in *":$d:"*) ;; *) PATH="$PATH:$d" ;; esac
done
export PATH
base="$HOME/.cache/deputy/$D_OWNER/jobs"
work="$HOME/.cache/deputy/$D_OWNER/work"
boot=- whole=
[ -r /proc/sys/kernel/random/boot_id ] && read -r boot < /proc/sys/kernel/random/boot_id
${PROCESSES}${SUPERVISE}${START}${FOLLOW}${CLEAN_UP}`

/** Without comments and indentation: it travels with every request. */
export const PROGRAM = SOURCE.replace(/^\s*(?:#.*)?\n/gm, '').replace(/^ +/gm, '')
