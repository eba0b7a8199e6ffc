/**
 * The guard and the plugin for Fastify 5: rules on addresses before the body is read, rules on accounts before the
 * handler.
 *
 * Does no arithmetic, reads no clock, opens and closes no connection. Invariant: the bytes of an answer depend on the
 * decision alone, never on whether the account exists. Tested in `tests/node/fastify.test.mjs`.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyPluginAsync } from 'fastify'
import { answerTo, type GuardAnswer } from '../guards/answers.js'
import { counting, countingAddresses, type GuardResult } from '../guards/counting.js'
import { ADDRESSES, type AddressOptions, GUARD, type GuardOptions as OptionsFor } from '../guards/options.js'
import { attemptOf as attemptIn, giveBackFor } from '../guards/requests.js'
import type { Attempt } from '../limiters/attempt.js'
import type { Limiter } from '../limiters/limiter.js'
import { known } from '../options/options.js'

export { clientAddress } from '../guards/client-address.js'
export type { AddressOptions } from '../guards/options.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The latest guard's attempt for this request, to be settled by the handler. */
    attempt?: Attempt
  }
}

/** The request that a guard passes to `keys`, unless its type says otherwise. */
export interface GuardedRequest {
  /** The request of Node, by which guards of one limiter find each other's attempt. */
  readonly raw: object
  readonly headers: IncomingHttpHeaders
  readonly socket: { readonly remoteAddress?: string | undefined }
  /** The latest guard's attempt for this request, to be settled by the handler. */
  attempt?: Attempt
  /** What the parser made of the body: nothing yet in `onRequest`. */
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on the parser and the schema
  body?: any
}

/** The part of a reply that a guard uses. */
export interface GuardedReply {
  readonly sent: boolean
  /** The response of Node. */
  readonly raw: { readonly headersSent: boolean }
  code(status: number): unknown
  headers(values: Record<string, string>): unknown
  send(payload: string): unknown
}

/** The options of {@link guard}. */
export type GuardOptions<Request extends Pick<GuardedRequest, 'raw'> = GuardedRequest> = OptionsFor<Request>

/** An asynchronous hook of Fastify. */
export type Guard<Request = GuardedRequest> = (request: Request, reply: GuardedReply) => Promise<unknown>

/** An asynchronous error handler of Fastify. */
export type ErrorHandler = (
  error: unknown,
  request: Pick<GuardedRequest, 'raw'>,
  reply: GuardedReply,
) => Promise<unknown>

/**
 * Makes a hook that counts an attempt under the keys of a request, and puts it on `request.attempt` for the handler to
 * settle. As `preHandler` it sees the body, parsed and validated.
 *
 * Answers a denial with 429 and Retry-After (left out when the wait never ends), a closed limiter whose store is
 * unavailable with 503 and Retry-After: 1, and an invalid key with 400. Any other error is passed to the error handler.
 *
 * The attempt stays counted unless the handler settles it, whatever the handler answers or throws. Only an error that
 * `giveBackOn` names gives it back, where {@link answerErrors} or {@link giveBack} handles that error. A second guard
 * of the same limiter in one request shares one attempt with the first, and with the address rules of {@link doorkeep}:
 * only new keys are counted.
 *
 * @example
 * ```ts
 * app.post('/login', { preHandler: guard({ limiter, keys: loginKeys }) }, async (request, reply) => {
 *   const user = await verify(request.body)
 *   if (!user) return reply.code(401).send({ error: 'wrong email or password' })
 *   await request.attempt.success({ forgive: [accountIp] })
 *   return { welcome: user.name }
 * })
 * ```
 * @throws {@link ConfigError} when the limiter or the function for the keys is missing, or an option is unknown.
 */
export function guard<Request extends Pick<GuardedRequest, 'raw'> = GuardedRequest>(
  options: GuardOptions<Request>,
): Guard<NoInfer<Request>> {
  const count = counting(known(options, GUARD))
  return async (request, reply) => apply(request, reply, await count(request, request.raw))
}

/**
 * A plugin that counts every request of the instance where it is registered, and of all below it, under rules on
 * addresses, in `onRequest`: before the body is read. The guards of routes continue the same attempt. A request that
 * has no address by nature, as over a Unix socket, is let through, with a warning each time; a client that hung up
 * before its address was read is answered with 400.
 *
 * It does not close the store: that is up to the application.
 *
 * @example
 * ```ts
 * await app.register(doorkeep, { limiter, rules: [loginIp], clientIp: new ClientIp({ trustedProxies: ['10.0.0.0/8'] }) })
 * ```
 * @throws {@link ConfigError} when the limiter is missing, or a rule is not `by` the address alone.
 */
export const doorkeep: FastifyPluginAsync<AddressOptions> = async (app, options) => {
  const count = countingAddresses(known(options, ADDRESSES))
  if (!app.hasRequestDecorator('attempt')) app.decorateRequest('attempt', undefined)
  app.addHook('onRequest', async (request, reply) => apply(request, reply, await count(request, request.raw)))
}

// Without its own scope: its hook is for the instance where it is registered, not for a child of it.
Object.assign(doorkeep, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'doorkeep',
  [Symbol.for('plugin-meta')]: { name: 'doorkeep', fastify: '5.x' },
})

export default doorkeep

/**
 * Makes the error handler of an instance and of all below it. An {@link InvalidKeyError}, a {@link RateLimitExceeded}
 * and an {@link AttemptDenied} that a handler throws are answered as by {@link guard}. Any other error is passed to the
 * error handler of the instance above, or to Fastify's own, after {@link giveBack}.
 *
 * @example
 * ```ts
 * app.setErrorHandler(answerErrors())
 * ```
 */
export function answerErrors(): ErrorHandler {
  return async (error, request, reply) => {
    await giveBack(error, request, reply)
    const answer = answerTo(error)
    if (!answer) throw error
    return send(reply, answer)
  }
}

/**
 * Gives back what guards counted for a request if their `giveBackOn` names the error, for an error handler of your own
 * instead of {@link answerErrors}. Call it before you answer: nothing is given back when the client has gone or the
 * answer has begun. What was counted on an address alone stays counted: a request that makes you fail is not free. An
 * application whose guards name no errors does not need it.
 */
export async function giveBack(
  error: unknown,
  request: Pick<GuardedRequest, 'raw'>,
  reply: Pick<GuardedReply, 'raw'>,
): Promise<void> {
  await giveBackFor(error, request.raw, reply.raw)
}

/**
 * Returns the attempt that a guard of this limiter counted for the request, for requests with guards of several
 * limiters.
 */
export function attemptOf(request: Pick<GuardedRequest, 'raw'>, limiter: Limiter): Attempt | undefined {
  return attemptIn(request.raw, limiter)
}

function apply(request: object, reply: GuardedReply, { attempt, ...answer }: GuardResult): unknown {
  if (attempt) (request as GuardedRequest).attempt = attempt
  return send(reply, answer)
}

function send(reply: GuardedReply, { headers, denial }: GuardAnswer): unknown {
  // An answer may have begun meanwhile, such as that of a hook that times requests out.
  if (reply.sent) return reply
  reply.headers(headers)
  if (!denial) return undefined
  reply.code(denial.status)
  // As a string, which no schema of the route and no serializer of the application changes.
  return reply.send(JSON.stringify(denial.body))
}
