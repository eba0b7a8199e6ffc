/**
 * Guards for Express 4 and 5: count an attempt before the handler runs.
 *
 * Does no arithmetic, reads no clock and opens no connection. Invariant: the bytes of an answer depend on the decision
 * alone, never on whether the account exists.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answerTo, type GuardAnswer } from '../guards/answers.js'
import { counting, countingAddresses, type GuardResult } from '../guards/counting.js'
import { ADDRESSES, type AddressOptions, GUARD, type GuardOptions as OptionsFor } from '../guards/options.js'
import { attemptOf as attemptIn, giveBackFor } from '../guards/requests.js'
import type { Attempt } from '../limiters/attempt.js'
import type { Limiter } from '../limiters/limiter.js'
import { known } from '../options/options.js'

export { clientAddress } from '../guards/client-address.js'
export type { AddressOptions } from '../guards/options.js'

declare global {
  namespace Express {
    interface Request {
      /** The latest guard's attempt for this request, to be settled by the handler. */
      attempt?: Attempt
    }
  }
}

/** The request that a guard passes to `keys`, unless its type says otherwise. */
export interface GuardedRequest extends IncomingMessage {
  /** The latest guard's attempt for this request, to be settled by the handler. */
  attempt?: Attempt
  /** The address of the client, according to Express' `trust proxy` setting. */
  ip?: string | undefined
  /** What an earlier body parser made of the body. */
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on the parser
  body?: any
}

/** The options of {@link guard}. */
export type GuardOptions<Request extends IncomingMessage = GuardedRequest> = OptionsFor<Request>

/** A middleware of Express. */
export type Guard<Request extends IncomingMessage = GuardedRequest> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/** An error-handling middleware of Express. */
export type ErrorHandler = (
  error: unknown,
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/**
 * Makes a middleware that counts an attempt under the keys of a request before the handler runs, and puts it on
 * `req.attempt` for the handler to settle.
 *
 * Answers a denial with 429 and Retry-After (left out when the wait never ends), a closed limiter whose store is
 * unavailable with 503 and Retry-After: 1, and an invalid key with 400. Any other error is passed to `next`.
 *
 * The attempt stays counted unless the handler settles it, whatever the handler answers or throws. Only an error that
 * `giveBackOn` names gives it back, where {@link answerErrors} or {@link giveBack} handles that error. A second guard
 * of the same limiter in one request counts only new keys, under the same attempt.
 *
 * @example
 * ```ts
 * app.post('/login', express.json(), guard({ limiter, keys: (req) => [loginIp.ipKey(req.ip)] }), async (req, res) => {
 *   const user = await verify(req.body)
 *   if (user) await req.attempt.success({ forgive: [accountIp] })
 *   res.sendStatus(user ? 204 : 401)
 * })
 * ```
 * @throws {@link ConfigError} when the limiter or the function for the keys is missing.
 */
export function guard<Request extends IncomingMessage = GuardedRequest>(
  options: GuardOptions<Request>,
): Guard<Request> {
  const count = counting(known(options, GUARD))
  return (request, response, next) => {
    count(request, request).then((result) => apply(request, response, next, result), next)
  }
}

/**
 * Makes a middleware that counts every request that passes it under rules on addresses: for whole routers, before a
 * body is parsed. Later guards continue the same attempt. A request that has no address by nature, as over a Unix
 * socket, is let through, with a warning each time; a client that hung up before its address was read is answered with
 * 400. Denials are answered as by {@link guard}.
 *
 * @example
 * ```ts
 * app.use('/account', addressLimit({ limiter, rules: [loginIp], clientIp: new ClientIp({ trustedProxies: ['10.0.0.0/8'] }) }))
 * ```
 * @throws {@link ConfigError} when the limiter is missing, or a rule is not `by` the address alone.
 */
export function addressLimit(options: AddressOptions): Guard<IncomingMessage> {
  const count = countingAddresses(known(options, ADDRESSES))
  return (request, response, next) => {
    count(request, request).then((result) => apply(request, response, next, result), next)
  }
}

/**
 * Makes the error handler to put behind all routes, before your own. An {@link InvalidKeyError}, a
 * {@link RateLimitExceeded} and an {@link AttemptDenied} that a handler passes on are answered as by {@link guard}. Any
 * other error is passed to `next`, after {@link giveBack}.
 *
 * @example
 * ```ts
 * app.use(answerErrors())
 * ```
 */
export function answerErrors(): ErrorHandler {
  return (error, request, response, next) => {
    giveBack(error, request, response).then(() => {
      const answer = answerTo(error)
      if (!answer || response.headersSent) next(error)
      else send(response, answer)
    }, next)
  }
}

/**
 * Gives back what guards counted for a request if their `giveBackOn` names the error, for an error handler of your own
 * instead of {@link answerErrors}. Call it before you answer: nothing is given back when the client has gone or the
 * answer has begun. What was counted on an address alone stays counted: a request that makes you fail is not free. An
 * application whose guards name no errors does not need it.
 */
export async function giveBack(error: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> {
  await giveBackFor(error, request, response)
}

/**
 * Returns the attempt that a guard of this limiter counted for the request, for requests with guards of several
 * limiters.
 */
export function attemptOf(request: IncomingMessage, limiter: Limiter): Attempt | undefined {
  return attemptIn(request, limiter)
}

function apply(
  request: GuardedRequest,
  response: ServerResponse,
  next: () => void,
  { attempt, ...answer }: GuardResult,
): void {
  if (attempt) request.attempt = attempt
  send(response, answer)
  if (!answer.denial) next()
}

function send(response: ServerResponse, { headers, denial }: GuardAnswer): void {
  // An answer may have begun meanwhile, such as that of a middleware that times requests out.
  if (response.headersSent) return
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (!denial) return
  response.statusCode = denial.status
  response.end(JSON.stringify(denial.body))
}
