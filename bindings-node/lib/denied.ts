/**
 * The errors that stand for a denial, for code that prefers to throw, with what an answer to them says.
 *
 * The limiters answer with a {@link Decision} and throw none of these. Invariant: the fields are those of the core.
 */
import { DoorkeepError, describe, NO_STORE } from './errors.js'
import * as http from './http.js'
import { type Decision, Outcome } from './limiters/decision.js'
import { type Duration, known } from './options/options.js'
import type { Key, Keys } from './rules/key.js'

/** What an {@link AttemptDenied} can be given. */
export interface DeniedOptions {
  readonly message?: string | undefined
  /** The keys that were asked. Without them `roundUp` holds for every rule, those on an address alone included. */
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

/** An attempt was denied: answer 429. The limiters answer with a {@link Decision}; code that prefers to throw has this. */
export class AttemptDenied extends DoorkeepError {
  readonly code: 'DOORKEEP_DENIED' | 'DOORKEEP_UNAVAILABLE' = 'DOORKEEP_DENIED'
  /** Why, and for how long. */
  readonly decision: Decision
  /** The keys that were asked, as far as they were passed. */
  readonly keys: readonly Key[]
  /** `Retry-After`, left out when no wait helps, and `Cache-Control`. Express and Fastify send them by themselves. */
  override readonly headers: Readonly<Record<string, string>>

  /**
   * The message may stand bare or as an option.
   *
   * @throws {@link ConfigError} when it is no decision, or an option is wrong.
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

/** The store could not be asked and the limiter fails closed: answer 503. */
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
 * Something may not be issued now, because its subject has used up its rate: answer 429. {@link IssueGuard} throws it, no
 * limiter does.
 */
export class RateLimitExceeded extends DoorkeepError {
  readonly code = 'DOORKEEP_RATE_LIMIT_EXCEEDED'
  /** How long its subject has to wait, in milliseconds; null when that is unknown or waiting does not help. */
  readonly retryAfterMs: number | null
  /** `Cache-Control`, and `Retry-After` when the wait is known. Express and Fastify send them by themselves. */
  override readonly headers: Readonly<Record<string, string>>

  /** The message may stand bare or as an option. */
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

/** A denial of which only the wait is known. */
function limited(retryAfterMs: number | null): Decision {
  const known = { outcome: Outcome.Denied, reason: 'limited', rule: null, retryAfterMs, remaining: 0, resetAfterMs: 0 }
  return known as Decision
}

function denial(options: string | DeniedOptions | undefined): DeniedOptions {
  return known(typeof options === 'string' ? { message: options } : options, OPTIONS)
}
