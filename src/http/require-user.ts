import { AppError } from '../jobs/errors.ts'
import type { Call } from './route.ts'

/** On the Unix socket, or in a console that was opened on a terminal. Whoever has a token may be an agent. */
export const isUser = ({ env, scope }: Pick<Call, 'env' | 'scope'>): boolean =>
  env.listener === 'socket' || scope === 'console'

/** Refuses a token: `what` needs the user, who runs `command` in a terminal. */
export const requireUser = (call: Call, what: string, command: string): void => {
  if (isUser(call)) return
  throw new AppError('denied', `${what} with a token.`, {
    hint: `Run ${command} in a terminal on the computer where the daemon runs.`,
  })
}
