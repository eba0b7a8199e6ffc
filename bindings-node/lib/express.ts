/**
 * The guard for Express 4 and 5: counts an attempt before the handler runs.
 *
 * Holds no arithmetic, reads no clock and opens no connection. Invariant: the bytes of an answer depend on the decision
 * alone, never on whether the account exists.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Attempt } from './attempt.js'
import type { Decision } from './decision.js'
import { ConfigError, InvalidKeyError } from './errors.js'
import type { Keys } from './key.js'
import { Limiter } from './limiter.js'
import { known } from './options.js'

declare global {
  namespace Express {
    interface Request {
      /** The attempt that the latest guard counted for this request, to be settled by the handler. */
      attempt?: Attempt
    }
  }
}

/** What a guard sees of a request unless `keys` says otherwise. */
export interface GuardedRequest extends IncomingMessage {
  /** The attempt that the latest guard counted for this request, to be settled by the handler. */
  attempt?: Attempt
  /** The address of the client, as Express' `trust proxy` setting tells it. */
  ip?: string
  /** What a body parser that ran before made of the body. */
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on the parser
  body?: any
}

/** What {@link guard} takes. */
export interface GuardOptions<Request extends IncomingMessage = GuardedRequest> {
  /** Decides. Guards of one limiter share one attempt per request. */
  readonly limiter: Limiter
  /** The keys of a request, made before any account is looked up. An {@link InvalidKeyError} here answers 400. */
  readonly keys: (request: Request) => Keys | PromiseLike<Keys>
  /** How much a request counts on each rate; by default 1. */
  readonly cost?: number | undefined
}

/** A middleware of Express. */
export type Guard<Request extends IncomingMessage = GuardedRequest> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

const OPTIONS: ReadonlySet<string> = new Set(['limiter', 'keys', 'cost'])
const attempts = new WeakMap<object, Map<Limiter, Attempt>>()

/**
 * Makes a middleware that counts an attempt under the keys of a request before the handler runs, and puts it on
 * `req.attempt` for the handler to settle.
 *
 * Denied: 429 with Retry-After (left out when the wait never ends). The store unavailable and the limiter closed: 503
 * with Retry-After: 1. A key that cannot be counted: 400. Any other error goes to `next`. A handler that throws, and a
 * client that hangs up, leave the attempt counted unless the handler cancels it. A second guard of the same limiter in
 * one request counts only the keys that are new, under the same attempt.
 *
 * @example
 * ```ts
 * app.post('/login', express.json(), guard({ limiter, keys: (req) => [loginIp.ipKey(req.ip)] }), async (req, res) => {
 *   const user = await verify(req.body)
 *   if (user) await req.attempt.success({ forgive: [accountIp] })
 *   res.sendStatus(user ? 204 : 401)
 * })
 * ```
 * @throws {@link ConfigError} when there is no limiter or no function for the keys.
 */
export function guard<Request extends IncomingMessage = GuardedRequest>(
  options: GuardOptions<Request>,
): Guard<Request> {
  const { limiter, keys, cost } = known(options, OPTIONS)
  if (!(limiter instanceof Limiter)) throw new ConfigError('limiter must be a Limiter')
  if (typeof keys !== 'function') throw new ConfigError('keys must be a function')

  return (request, response, next) => {
    const decide = async (): Promise<Decision> => count(request, limiter, await keys(request), cost)
    decide().then(
      (decision) => (decision.allowed ? next() : deny(response, decision)),
      (error: unknown) => (error instanceof InvalidKeyError ? answer(response, 400, 'invalid key') : next(error)),
    )
  }
}

/** The attempt that a guard of this limiter counted for the request, when guards of several limiters ran. */
export function attemptOf(request: IncomingMessage, limiter: Limiter): Attempt | undefined {
  return attempts.get(request)?.get(limiter)
}

async function count(
  request: GuardedRequest,
  limiter: Limiter,
  keys: Keys,
  cost: number | undefined,
): Promise<Decision> {
  const known = attempts.get(request) ?? new Map<Limiter, Attempt>()
  const before = known.get(limiter)
  if (before) {
    request.attempt = before
    return before.extend(keys, { cost })
  }
  const attempt = await limiter.attempt(keys, { cost })
  attempts.set(request, known.set(limiter, attempt))
  request.attempt = attempt
  return attempt.decision
}

function deny(response: ServerResponse, decision: Decision): void {
  if (decision.reason === 'unavailable') answer(response, 503, 'temporarily unavailable', 1)
  else answer(response, 429, 'too many attempts', decision.retryAfterSeconds)
}

function answer(response: ServerResponse, status: number, error: string, retryAfter: number | null = null): void {
  // Somebody has answered meanwhile, such as a middleware that times requests out. The handler must not run all the same.
  if (response.headersSent) return
  response.statusCode = status
  if (retryAfter !== null) response.setHeader('Retry-After', String(retryAfter))
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader('Cache-Control', 'no-store')
  response.end(JSON.stringify({ error }))
}
