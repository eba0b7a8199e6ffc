/**
 * Decisions in HTTP: a status, and the header fields that go with it.
 *
 * Knows no request and no framework; the core makes everything. Invariant: no field derives from the value of a key.
 */
import { ConfigError } from './errors.js'
import type { Decision } from './limiters/decision.js'
import { type NativeDecision, native } from './native/binding.js'
import { unwrap } from './native/failure.js'
import { type Duration, known } from './options/options.js'
import { type Keys, writeKeys } from './rules/key.js'

/** The options of {@link headers}. */
export interface HeaderOptions {
  /** The keys of the call. Without them every wait is rounded up and no policy is named. */
  readonly keys?: Keys | undefined
  /**
   * Makes the wait a multiple of this duration, unless the rule that denied is keyed by an address alone. A client that
   * asks about the account of another must not read from the wait when others have tried it. Whole seconds, at least 1.
   */
  readonly roundUp?: Duration | undefined
  /**
   * Adds `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10, even when the decision is
   * allowed. They show a stranger how many attempts others have made. By default they are left out.
   */
  readonly rateLimit?: boolean | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['keys', 'roundUp', 'rateLimit'])

/**
 * Returns the status of a decision: 200 when allowed, 429 when denied, 503 when the limiter is unavailable.
 *
 * @throws {@link ConfigError} when it is not a decision, such as one that was not awaited.
 */
export function status(decision: Decision): number {
  return unwrap(native.httpStatus(crossing(decision)))
}

/**
 * Returns the header fields of a decision of any limiter.
 *
 * A denial has `Retry-After`: whole seconds, rounded up, at least 1. It is left out when waiting does not help, and is
 * 1 when the limiter is unavailable.
 *
 * @example
 * ```ts
 * const decision = await limiter.decide(keys)
 * if (!decision.allowed) res.writeHead(http.status(decision), http.headers(decision, { keys })).end()
 * ```
 * @throws {@link ConfigError} when it is not a decision, or `roundUp` is not a duration of whole seconds.
 */
export function headers(decision: Decision, options?: HeaderOptions): Record<string, string> {
  const { keys, roundUp, rateLimit } = known(options, OPTIONS)
  writeKeys(keys ?? [])
  const fields = unwrap(native.httpHeaders(crossing(decision), roundUp, rateLimit === true))
  const named: Record<string, string> = {}
  for (let index = 0; index < fields.length; index += 2) named[fields[index]] = fields[index + 1]
  return named
}

/**
 * Checks a duration for `roundUp` when a program starts, rather than at the first denial.
 *
 * @throws {@link ConfigError} when it is not a duration of whole seconds, at least 1. `undefined` is valid.
 */
export function checkRoundUp(roundUp: Duration | undefined): void {
  unwrap(native.httpRoundUp(roundUp))
}

function crossing(decision: Decision): NativeDecision {
  // A promise of a decision has no outcome: it must not be taken for an admission.
  if (typeof decision?.outcome !== 'number')
    throw new ConfigError('a decision must be what a limiter answered, awaited')
  const { outcome, reason, rule, retryAfterMs, remaining, resetAfterMs } = decision
  return [outcome, reason, rule, retryAfterMs, remaining, resetAfterMs]
}
