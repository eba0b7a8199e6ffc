/**
 * The guards for Express 4 and 5: count an attempt before the handler runs.
 *
 * Holds no arithmetic, reads no clock and opens no connection. Invariant: the bytes of an answer depend on the decision
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
  ip?: string | undefined
  /** What a body parser that ran before made of the body. */
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on the parser
  body?: any
}

/** What {@link guard} takes. */
export type GuardOptions<Request extends IncomingMessage = GuardedRequest> = OptionsFor<Request>

/** A middleware of Express. */
export type Guard<Request extends IncomingMessage = GuardedRequest> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void

/** A middleware of Express that handles errors. */
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
 * Denied: 429 with Retry-After (left out when the wait never ends). The store unavailable and the limiter closed: 503
 * with Retry-After: 1. A key that cannot be counted: 400. Any other error goes to `next`.
 *
 * The attempt stays counted unless the handler settles it, whatever the handler answers or throws. Only an error that
 * `giveBackOn` names gives it back, where {@link answerErrors} or {@link giveBack} handles that error. A second guard of
 * the same limiter in one request counts only the keys that are new, under the same attempt.
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
  const count = counting(known(options, GUARD))
  return (request, response, next) => {
    count(request, request).then((result) => apply(request, response, next, result), next)
  }
}

/**
 * Makes a middleware that counts every request which passes it under rules on addresses: for whole routers, before a body
 * is parsed. Guards that come later go on with the same attempt. A request that has no address by nature, as over a Unix
 * socket, is let through, with a warning each time; a client that hung up before its address was read is answered with
 * 400. Denials are answered as by {@link guard}.
 *
 * @example
 * ```ts
 * app.use('/account', addressLimit({ limiter, rules: [loginIp], clientIp: new ClientIp({ trustedProxies: ['10.0.0.0/8'] }) }))
 * ```
 * @throws {@link ConfigError} when there is no limiter, or a rule is not `by` the address alone.
 */
export function addressLimit(options: AddressOptions): Guard<IncomingMessage> {
  const count = countingAddresses(known(options, ADDRESSES))
  return (request, response, next) => {
    count(request, request).then((result) => apply(request, response, next, result), next)
  }
}

/**
 * Makes the error handler to put behind all routes, in front of your own. An {@link InvalidKeyError}, a
 * {@link RateLimitExceeded} and an {@link AttemptDenied} that a handler passes on are answered as by {@link guard}. Any
 * other error goes on to `next`, after {@link giveBack}.
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
 * Gives back what guards counted for a request if their `giveBackOn` names the error, for an error handler of your own in
 * place of {@link answerErrors}. Call it before you answer: nothing is given back when the client has gone or the answer
 * has begun. What was counted on an address alone stays counted: a request that makes you fail is not free. An application
 * whose guards name no errors does not need it.
 */
export async function giveBack(error: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> {
  await giveBackFor(error, request, response)
}

/** The attempt that a guard of this limiter counted for the request, when guards of several limiters ran. */
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
  // Somebody may have answered meanwhile, such as a middleware that times requests out.
  if (response.headersSent) return
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (!denial) return
  response.statusCode = denial.status
  response.end(JSON.stringify(denial.body))
}
