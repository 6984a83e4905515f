import { setMaxListeners } from 'node:events'
import { type Context, Hono } from 'hono'
import { AppError, toAppError } from '../jobs/errors.ts'
import { createGuard } from './auth.ts'
import { createConsoleSessions } from './console-sessions.ts'
import type { ControlDeps } from './deps.ts'
import { createHttpMetrics } from './http-metrics.ts'
import { isUser } from './require-user.ts'
import { errorResponse } from './respond.ts'
import type { Call, HttpEnv, Route } from './route.ts'
import { controlRoutes } from './routes/all-routes.ts'

export type ControlApp = Hono<{ Bindings: HttpEnv }>

/**
 * Everything the daemon serves. Each request meets exactly one handler, built here around its route: authentication,
 * parsing, errors, metrics. Hono is fastest without middleware.
 */
export const createControlApp = (deps: ControlDeps): ControlApp => {
  const { log, metrics, tokens, allowedHosts = [] } = deps
  const sessions = createConsoleSessions(tokens.sessionKey)
  const guard = createGuard({ tokens, sessions, allowedHosts })
  const measure = createHttpMetrics(metrics)
  const routes = controlRoutes(deps, sessions)
  // Every waiting request adds a listener; hundreds of them are not a leak.
  setMaxListeners(0, deps.closing)
  const app: ControlApp = new Hono()

  const admit = (c: Context<{ Bindings: HttpEnv }>, route: Route | undefined): Call => {
    const { raw: request } = c.req
    const env = c.env ?? {}
    const { method, headers } = request
    const readable = method === 'GET' || method === 'HEAD' || route?.readable === true
    const scope = guard({ env, headers, open: route?.open === true, readable })
    return {
      request,
      env,
      params: c.req.param(),
      path: c.req.path,
      scope,
      origin: originOf(headers, isUser({ env, scope })),
    }
  }

  const fail = (thrown: unknown, request: Request): Response => {
    const error = toAppError(thrown)
    // If the client has disconnected, the failure is not a defect and is not logged.
    if (error.code === 'internal' && !request.signal.aborted)
      log.error({ err: thrown, method: request.method, path: pathOf(request) }, 'request failed')
    return errorResponse(error, error.code === 'unauthorized' ? CHALLENGE : undefined)
  }

  for (const route of routes) {
    const record = measure(route)
    app.on(route.method, honoPath(route.path), async c => {
      const begin = performance.now()
      let response: Response
      try {
        response = await route.run(admit(c, route))
      } catch (thrown) {
        response = fail(thrown, c.req.raw)
      }
      record(response.status, performance.now() - begin)
      return response
    })
  }

  app.notFound(c => {
    const allowed = allowedMethods(app, c.req.path)
    try {
      admit(c, undefined)
    } catch (thrown) {
      return fail(thrown, c.req.raw)
    }
    const error = noRoute(c.req.method, c.req.path, allowed)
    return errorResponse(error, allowed.length > 0 ? { allow: allowed.join(', ') } : undefined)
  })
  app.onError((thrown, c) => fail(thrown, c.req.raw))
  return app
}

const CHALLENGE = { 'www-authenticate': 'Bearer realm="deputy"' }

/** `{path}` comes last and may contain slashes. */
const honoPath = (path: string): string => path.replace(/\{path\}$/, ':path{.+}').replace(/\{(\w+)\}/g, ':$1')

const ORIGIN = /^[A-Za-z][\w.:@/-]{0,63}$/

/** A token may belong to an agent, whose jobs and decisions must not be recorded as those of its user. */
const originOf = (headers: Headers, isUser: boolean): string => {
  const origin = headers.get('x-deputy-origin')
  if (origin === null) return 'http'
  if (ORIGIN.test(origin)) return isUser ? origin : `http:${origin}`
  throw new AppError('invalid', `Invalid x-deputy-origin '${origin.slice(0, 60)}'.`)
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const

const allowedMethods = (app: ControlApp, path: string): string[] =>
  METHODS.filter(method => app.router.match(method, path)[0].length > 0)

const noRoute = (method: string, path: string, allowed: readonly string[]): AppError =>
  allowed.length === 0
    ? new AppError('not_found', `No route ${method} ${path.slice(0, 200)}.`, {
        hint: 'GET /openapi.json lists all routes.',
      })
    : new AppError('method_not_allowed', `${path.slice(0, 200)} does not support ${method}.`, {
        hint: `Use ${allowed.join(', ')}.`,
      })

const pathOf = (request: Request): string => new URL(request.url).pathname
