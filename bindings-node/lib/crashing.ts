/**
 * What becomes of an attempt whose handler fails: an answer leaves it counted, a crash is no guess.
 *
 * Knows no framework. Invariant: what a client can bring about gives nothing back, and nothing gives back what was counted
 * by addresses in front of the guards: a request that makes the application fail is not free.
 * Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import { type Held, heldFor } from './guarding.js'
import type { ErrorClass, Limiter } from './limiter.js'

/** What a request is, as far as it can be told whether somebody still waits for the answer. */
export interface Connected {
  readonly socket?: { readonly destroyed?: boolean }
}

/** A response of Node, as far as it can be told whether the answer has begun. */
export interface Responding {
  readonly headersSent?: boolean
}

/**
 * Gives back what guards have counted for a request that crashed, of one limiter or of all. Nothing when the error is an
 * answer, when the client has gone, and when it has the answer already: it may have read there whether its guess was right.
 */
export async function giveBackCrash(
  error: unknown,
  request: Connected,
  response: Responding,
  only?: Limiter,
): Promise<void> {
  if (request.socket?.destroyed || response.headersSent) return
  for (const [limiter, held] of heldFor(request)) {
    if ((only ?? limiter) === limiter && !isAnswer(error, held.countOn)) await giveBack(held)
  }
}

async function giveBack({ attempt, guarded, kept }: Held): Promise<void> {
  if (kept.size === 0) await attempt.cancel()
  else await attempt.success({ giveBack: [...guarded].filter((name) => !kept.has(name)) })
}

/** By its shape, as frameworks judge. Of several errors one that is an answer is enough: failing together frees nothing. */
function isAnswer(error: unknown, countOn: readonly ErrorClass[]): boolean {
  if (typeof error !== 'object' || error === null) return false
  if (error instanceof AggregateError && error.errors.some((one) => isAnswer(one, countOn))) return true
  const { name, getStatus, statusCode, status } = error as Shape
  const told = [typeof getStatus === 'function' ? getStatus.call(error) : undefined, statusCode, status]
  return told.some(isBelow500) || name === 'AbortError' || countOn.some((one) => error instanceof one)
}

interface Shape {
  readonly name?: unknown
  readonly getStatus?: unknown
  readonly statusCode?: unknown
  readonly status?: unknown
}

function isBelow500(status: unknown): boolean {
  return typeof status === 'number' && 100 <= status && status < 500
}
