/**
 * The errors, one class for each thing that a caller can do next. Each carries a stable `code`.
 *
 * Knows nothing of the native module. Invariant: no message carries a key's value.
 */
import type { Decision } from './decision.js'

/** The codes that an error of this package can carry. Stable: compare these, not messages. */
export type ErrorCode =
  | 'DOORKEEP_CONFIG'
  | 'DOORKEEP_INVALID_KEY'
  | 'DOORKEEP_DENIED'
  | 'DOORKEEP_UNAVAILABLE'
  | 'DOORKEEP_RATE_LIMIT_EXCEEDED'

/** The base of all errors of this package. */
export abstract class DoorkeepError extends Error {
  /** What kind of error this is, for code to read. */
  abstract readonly code: ErrorCode
  static {
    name(DoorkeepError, 'DoorkeepError')
  }
}

/** The configuration or the call is wrong: fix the program. The message names the piece and the bound. */
export class ConfigError extends DoorkeepError {
  readonly code = 'DOORKEEP_CONFIG'
  static {
    name(ConfigError, 'ConfigError')
  }
}

/** A key that cannot be counted, such as an empty one: answer 400. Nothing was counted. */
export class InvalidKeyError extends DoorkeepError {
  readonly code = 'DOORKEEP_INVALID_KEY'
  static {
    name(InvalidKeyError, 'InvalidKeyError')
  }
}

/** An attempt was denied: answer 429. The limiters answer with a {@link Decision}; code that prefers to throw has this. */
export class AttemptDenied extends DoorkeepError {
  readonly code: 'DOORKEEP_DENIED' | 'DOORKEEP_UNAVAILABLE' = 'DOORKEEP_DENIED'
  /** Why, and for how long. */
  readonly decision: Decision

  constructor(decision: Decision, message = 'attempt denied') {
    super(message)
    this.decision = decision
  }
  static {
    name(AttemptDenied, 'AttemptDenied')
  }
}

/** The store could not be asked and the limiter fails closed: answer 503. */
export class LimiterUnavailable extends AttemptDenied {
  override readonly code = 'DOORKEEP_UNAVAILABLE'

  constructor(decision: Decision, message = 'limiter unavailable') {
    super(decision, message)
  }
  static {
    name(LimiterUnavailable, 'LimiterUnavailable')
  }
}

/** Something may not be issued now, because its subject has used up its rate: answer 429. {@link IssueGuard} throws it, no limiter does. */
export class RateLimitExceeded extends DoorkeepError {
  readonly code = 'DOORKEEP_RATE_LIMIT_EXCEEDED'

  constructor(message = 'rate limit exceeded') {
    super(message)
  }
  static {
    name(RateLimitExceeded, 'RateLimitExceeded')
  }
}

/** On the prototype and not enumerable, as the names of the language's own errors are. */
function name(of: { prototype: object }, value: string): void {
  Object.defineProperty(of.prototype, 'name', { value, configurable: true, writable: true })
}
