/**
 * What guards and error handlers of all frameworks answer instead of the application.
 *
 * Knows no request. Invariant: the bytes depend on the decision alone, never on whether the account exists. Tested
 * through each adapter, in `tests/node/guards.test.mjs`.
 */
import { AttemptDenied, RateLimitExceeded } from '../denied.js'
import { InvalidKeyError, NO_STORE } from '../errors.js'
import { status } from '../http.js'
import type { Decision } from '../limiters/decision.js'

/** What to answer instead of the handler. */
export interface Denial {
  /** 429, 503 when the limiter is unavailable, 400 when a key cannot be counted. */
  readonly status: number
  readonly body: { readonly error: string }
}

/** Header fields for the answer, and a denial if the handler must not run. */
export interface GuardAnswer {
  /** For the answer of the guard or of the handler. */
  readonly headers: Readonly<Record<string, string>>
  /** Undefined when the handler may run. */
  readonly denial: Denial | undefined
}

const FIELDS: Readonly<Record<string, string>> = Object.freeze({
  'Content-Type': 'application/json; charset=utf-8',
  ...NO_STORE,
})
const TOO_MANY = 'too many attempts'

/** The answer to a key that cannot be counted. */
export const INVALID_KEY: GuardAnswer = refusal(400, 'invalid key')

/** Returns the answer to a decision, with its header fields. */
export function answer(decision: Decision, fields: Readonly<Record<string, string>>): GuardAnswer {
  if (decision.allowed) return { headers: fields, denial: undefined }
  const error = decision.reason === 'unavailable' ? 'temporarily unavailable' : TOO_MANY
  return refusal(status(decision), error, fields)
}

/** Returns the answer to an error that a guard would have given; undefined for any other error. */
export function answerTo(error: unknown): GuardAnswer | undefined {
  if (error instanceof InvalidKeyError) return INVALID_KEY
  if (error instanceof RateLimitExceeded) return refusal(429, TOO_MANY, error.headers)
  // An error about an admission is a bug in the program, and has no answer.
  if (!(error instanceof AttemptDenied) || error.decision.allowed) return undefined
  return answer(error.decision, error.headers)
}

function refusal(status: number, error: string, fields: Readonly<Record<string, string>> = {}): GuardAnswer {
  return Object.freeze({ headers: { ...fields, ...FIELDS }, denial: { status, body: { error } } })
}
