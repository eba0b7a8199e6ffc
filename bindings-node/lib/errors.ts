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
  /** What HTTP answers, where the error handlers of frameworks look for it. Undefined: the program is wrong. */
  declare readonly statusCode: number | undefined
  /** The same as `statusCode`: some look for it here. */
  declare readonly status: number | undefined
  /** Whether the client may read the message. */
  declare readonly expose: boolean
  static {
    describe(DoorkeepError, 'DoorkeepError')
  }
}

/** The configuration or the call is wrong: fix the program. The message names the piece and the bound. */
export class ConfigError extends DoorkeepError {
  readonly code = 'DOORKEEP_CONFIG'
  static {
    describe(ConfigError, 'ConfigError')
  }
}

/** A key that cannot be counted, such as an empty one: answer 400. Nothing was counted. */
export class InvalidKeyError extends DoorkeepError {
  readonly code = 'DOORKEEP_INVALID_KEY'
  static {
    describe(InvalidKeyError, 'InvalidKeyError', 400)
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
    describe(AttemptDenied, 'AttemptDenied', 429)
  }
}

/** The store could not be asked and the limiter fails closed: answer 503. */
export class LimiterUnavailable extends AttemptDenied {
  override readonly code = 'DOORKEEP_UNAVAILABLE'

  constructor(decision: Decision, message = 'limiter unavailable') {
    super(decision, message)
  }
  static {
    describe(LimiterUnavailable, 'LimiterUnavailable', 503)
  }
}

/** Something may not be issued now, because its subject has used up its rate: answer 429. {@link IssueGuard} throws it, no limiter does. */
export class RateLimitExceeded extends DoorkeepError {
  readonly code = 'DOORKEEP_RATE_LIMIT_EXCEEDED'

  constructor(message = 'rate limit exceeded') {
    super(message)
  }
  static {
    describe(RateLimitExceeded, 'RateLimitExceeded', 429)
  }
}

/** On the prototype and not enumerable, as the names of the language's own errors are. */
function describe(of: { prototype: object }, name: string, status?: number): void {
  const properties = { name, status, statusCode: status, expose: status !== undefined && status < 500 }
  for (const [property, value] of Object.entries(properties)) {
    Object.defineProperty(of.prototype, property, { value, configurable: true, writable: true })
  }
}
