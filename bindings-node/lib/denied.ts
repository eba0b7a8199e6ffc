/**
 * The errors for a denial, for code that prefers to throw, with the header fields of the answer to them.
 *
 * Limiters return a {@link Decision} and throw none of these. Invariant: the core makes the fields.
 */
import { DoorkeepError, describe, NO_STORE } from './errors.js'
import * as http from './http.js'
import { type Decision, Outcome } from './limiters/decision.js'
import { type Duration, known } from './options/options.js'
import type { Key, Keys } from './rules/key.js'

/** The options of an {@link AttemptDenied}. */
export interface DeniedOptions {
  readonly message?: string | undefined
  /** The keys of the call. Without them `roundUp` applies to every rule, even to one on an address alone. */
  readonly keys?: Keys | undefined
  /** Makes the wait a multiple of this duration, as in a guard. */
  readonly roundUp?: Duration | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['message', 'keys', 'roundUp'])

/** The options of a {@link RateLimitExceeded}. */
export interface ExceededOptions {
  readonly message?: string | undefined
  /** How long its subject has to wait, in milliseconds; null when that is unknown or waiting does not help. */
  readonly retryAfterMs?: number | null | undefined
}

const EXCEEDED: ReadonlySet<string> = new Set(['message', 'retryAfterMs'])

/** An attempt was denied: answer 429. Limiters return a {@link Decision}; this is for code that prefers to throw. */
export class AttemptDenied extends DoorkeepError {
  readonly code: 'DOORKEEP_DENIED' | 'DOORKEEP_UNAVAILABLE' = 'DOORKEEP_DENIED'
  /** Why it was denied, and for how long. */
  readonly decision: Decision
  /** The keys of the call, if they were passed. */
  readonly keys: readonly Key[]
  /**
   * `Retry-After`, left out when waiting does not help, and `Cache-Control`. Express and Fastify send them
   * automatically.
   */
  override readonly headers: Readonly<Record<string, string>>

  /**
   * Accepts the message alone or as an option.
   *
   * @throws {@link ConfigError} when it is not a decision, or an option is wrong.
   */
  constructor(decision: Decision, options?: string | DeniedOptions) {
    const { message = 'attempt denied', keys = [], roundUp } = denial(options)
    super(message)
    this.decision = decision
    this.keys = Object.freeze([keys].flat() as Key[])
    this.headers = Object.freeze({ ...http.headers(decision, { keys, roundUp }), ...NO_STORE })
  }
  static {
    describe(AttemptDenied, 'AttemptDenied', 429)
  }
}

/** The store could not be reached and the limiter fails closed: answer 503. */
export class LimiterUnavailable extends AttemptDenied {
  override readonly code = 'DOORKEEP_UNAVAILABLE'

  constructor(decision: Decision, options?: string | DeniedOptions) {
    super(decision, { ...denial(options), message: denial(options).message ?? 'limiter unavailable' })
  }
  static {
    describe(LimiterUnavailable, 'LimiterUnavailable', 503)
  }
}

/**
 * No token may be issued now, because its subject has used up its rate: answer 429. {@link IssueGuard} throws it, no
 * limiter does.
 */
export class RateLimitExceeded extends DoorkeepError {
  readonly code = 'DOORKEEP_RATE_LIMIT_EXCEEDED'
  /** How long its subject has to wait, in milliseconds; null when that is unknown or waiting does not help. */
  readonly retryAfterMs: number | null
  /** `Cache-Control`, and `Retry-After` when the wait is known. Express and Fastify send them automatically. */
  override readonly headers: Readonly<Record<string, string>>

  /** Accepts the message alone or as an option. */
  constructor(options?: string | ExceededOptions) {
    const { message, retryAfterMs } = known(typeof options === 'string' ? { message: options } : options, EXCEEDED)
    super(message ?? 'rate limit exceeded')
    this.retryAfterMs = retryAfterMs ?? null
    this.headers = Object.freeze({ ...http.headers(limited(this.retryAfterMs)), ...NO_STORE })
  }
  static {
    describe(RateLimitExceeded, 'RateLimitExceeded', 429)
  }
}

/** Makes a denial of which only the wait is known. */
function limited(retryAfterMs: number | null): Decision {
  const known = { outcome: Outcome.Denied, reason: 'limited', rule: null, retryAfterMs, remaining: 0, resetAfterMs: 0 }
  return known as Decision
}

function denial(options: string | DeniedOptions | undefined): DeniedOptions {
  return known(typeof options === 'string' ? { message: options } : options, OPTIONS)
}
