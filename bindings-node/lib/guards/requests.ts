/**
 * The attempts of a request: at most one for each limiter, whichever guards it passes.
 *
 * Knows no framework: a request is an object that lives as long as it does. Invariants: a key is counted once in a
 * request, whichever guards name it; what was counted stays counted, whatever happens to the request, unless
 * `giveBackOn` of a guard names the error. Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import type { Attempt } from '../limiters/attempt.js'
import type { Decision } from '../limiters/decision.js'
import { type ErrorClass, giveBackIfNamed } from '../limiters/give-back.js'
import type { Limiter } from '../limiters/limiter.js'
import type { Keys } from '../rules/key.js'

/** What one limiter has counted for a request, and which errors give it back. */
export interface Counted {
  readonly attempt: Attempt
  readonly giveBackOn: ErrorClass[]
}

// By the request itself, so that its attempts are collected with it.
const requests = new WeakMap<object, Map<Limiter, Counted>>()

/** Counts keys for a request: as a new attempt, or as part of the one that an earlier guard of this limiter made. */
export async function countFor(
  identity: object,
  limiter: Limiter,
  keys: Keys,
  cost: number | undefined,
): Promise<{ readonly counted: Counted; readonly decision: Decision }> {
  const before = countedFor(identity).get(limiter)
  if (before) return { counted: before, decision: await before.attempt.extend(keys, { cost }) }
  const attempt = await limiter.attempt(keys, { cost })
  const counted: Counted = { attempt, giveBackOn: [] }
  const all = requests.get(identity) ?? new Map<Limiter, Counted>()
  requests.set(identity, all.set(limiter, counted))
  return { counted, decision: attempt.decision }
}

/** The attempt that the guards of this limiter counted for a request. */
export function attemptOf(identity: object, limiter: Limiter): Attempt | undefined {
  return countedFor(identity).get(limiter)?.attempt
}

/** The part of a request that shows whether its client still waits for the answer. */
export interface Connected {
  readonly socket?: { readonly destroyed?: boolean }
}

/** The part of a response of Node that shows whether the answer has begun. */
export interface Responding {
  readonly headersSent?: boolean
}

/**
 * Gives back what guards have counted for a request, of one limiter or of all, if they name the error. Does nothing
 * when the client has gone, or has the answer already: it may have read there whether its guess was right.
 */
export async function giveBackFor(
  error: unknown,
  request: Connected,
  response: Responding,
  only?: Limiter,
): Promise<void> {
  if (request.socket?.destroyed || response.headersSent) return
  for (const [limiter, { attempt, giveBackOn }] of countedFor(request)) {
    if ((only ?? limiter) === limiter) await giveBackIfNamed(attempt, error, giveBackOn)
  }
}

function countedFor(identity: object): ReadonlyMap<Limiter, Counted> {
  return requests.get(identity) ?? new Map<Limiter, Counted>()
}
