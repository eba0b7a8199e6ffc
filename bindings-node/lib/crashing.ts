/**
 * What becomes of the attempts of a request whose handler fails: they stay counted, unless `giveBackOn` of a guard names the
 * error.
 *
 * Knows no framework. Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import { heldFor } from './guarding.js'
import { leave } from './leaving.js'
import type { Limiter } from './limiter.js'

/** What a request is, as far as it can be told whether somebody still waits for the answer. */
export interface Connected {
  readonly socket?: { readonly destroyed?: boolean }
}

/** A response of Node, as far as it can be told whether the answer has begun. */
export interface Responding {
  readonly headersSent?: boolean
}

/**
 * Gives back what guards have counted for a request, of one limiter or of all, if they name the error. Nothing when the
 * client has gone, and when it has the answer already: it may have read there whether its guess was right.
 */
export async function giveBackCrash(
  error: unknown,
  request: Connected,
  response: Responding,
  only?: Limiter,
): Promise<void> {
  if (request.socket?.destroyed || response.headersSent) return
  for (const [limiter, held] of heldFor(request)) {
    if ((only ?? limiter) === limiter) await leave(held.attempt, error, held.giveBackOn)
  }
}
