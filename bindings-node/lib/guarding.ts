/**
 * What the guards of all frameworks share: one attempt per request and limiter, and what a denial answers.
 *
 * Knows no framework: a request is an object that lives as long as it does. Holds no arithmetic and reads no clock.
 * Invariant: the bytes of a denial depend on the decision alone, never on whether the account exists.
 * Tested through each adapter, in `tests/node`.
 */
import type { Attempt } from './attempt.js'
import type { Decision } from './decision.js'
import { ConfigError, InvalidKeyError } from './errors.js'
import type { Keys } from './key.js'
import { Limiter } from './limiter.js'

/** What every guard takes. */
export interface GuardOptions<Request> {
  /** Decides. Guards of one limiter share one attempt per request. */
  readonly limiter: Limiter
  /** The keys of a request, made before any account is looked up. An {@link InvalidKeyError} here answers 400. */
  readonly keys: (request: Request) => Keys | PromiseLike<Keys>
  /** How much a request counts on each rate; by default 1. */
  readonly cost?: number | undefined
}

/** What to answer in place of the handler. */
export interface Denial {
  /** 429, 503 when the limiter is unavailable, 400 when a key cannot be counted. */
  readonly status: number
  readonly body: { readonly error: string }
}

/** How a request goes on. */
export interface Verdict {
  /** The attempt of this limiter in this request; undefined when a key could not be counted. */
  readonly attempt: Attempt | undefined
  /** For the answer, whoever gives it. */
  readonly headers: Readonly<Record<string, string>>
  /** Undefined when the handler may run. */
  readonly denial: Denial | undefined
}

/** The names of {@link GuardOptions}. */
export const GUARD: ReadonlySet<string> = new Set(['limiter', 'keys', 'cost'])

// By the request itself, so that an attempt goes when its request does.
const attempts = new WeakMap<object, Map<Limiter, Attempt>>()

/**
 * Makes the function that counts a request. `identity` is the object that all guards of one request have in common, in
 * whatever shape a framework shows the request to each of them. Rejects with any error but that of a key.
 *
 * @throws {@link ConfigError} when there is no limiter or no function for the keys.
 */
export function counting<Request>(
  options: GuardOptions<Request>,
): (request: Request, identity: object) => Promise<Verdict> {
  const { limiter, keys, cost } = options
  if (!(limiter instanceof Limiter)) throw new ConfigError('limiter must be a Limiter')
  if (typeof keys !== 'function') throw new ConfigError('keys must be a function')

  return async (request, identity) => {
    try {
      const decision = await count(identity, limiter, await keys(request), cost)
      return verdict(attemptOf(identity, limiter), decision)
    } catch (error) {
      if (!(error instanceof InvalidKeyError)) throw error
      const denial = { status: 400, body: { error: 'invalid key' } }
      return { attempt: undefined, headers: ANSWER, denial }
    }
  }
}

/** The attempt that the guards of this limiter counted for a request. */
export function attemptOf(identity: object, limiter: Limiter): Attempt | undefined {
  return attempts.get(identity)?.get(limiter)
}

async function count(identity: object, limiter: Limiter, keys: Keys, cost: number | undefined): Promise<Decision> {
  const before = attemptOf(identity, limiter)
  if (before) return before.extend(keys, { cost })
  const attempt = await limiter.attempt(keys, { cost })
  const held = attempts.get(identity) ?? new Map<Limiter, Attempt>()
  attempts.set(identity, held.set(limiter, attempt))
  return attempt.decision
}

const ANSWER: Readonly<Record<string, string>> = Object.freeze({
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store',
})

function verdict(attempt: Attempt | undefined, decision: Decision): Verdict {
  if (decision.allowed) return { attempt, headers: {}, denial: undefined }
  const unavailable = decision.reason === 'unavailable'
  const wait = unavailable ? 1 : decision.retryAfterSeconds
  return {
    attempt,
    headers: wait === null ? ANSWER : { 'Retry-After': String(wait), ...ANSWER },
    denial: unavailable
      ? { status: 503, body: { error: 'temporarily unavailable' } }
      : { status: 429, body: { error: 'too many attempts' } },
  }
}
