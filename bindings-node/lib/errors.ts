/**
 * The errors, one class for each thing that a caller can do next. Each has a stable `code`.
 *
 * Knows nothing of the native module. Invariant: no message contains a key's value.
 */

/**
 * The codes of the errors of this package. They are stable: compare these, not messages. A plain `Error` with the code
 * `DOORKEEP_INTERNAL` is a bug in this package: please report it.
 */
export type ErrorCode =
  | 'DOORKEEP_CONFIG'
  | 'DOORKEEP_INVALID_KEY'
  | 'DOORKEEP_DENIED'
  | 'DOORKEEP_UNAVAILABLE'
  | 'DOORKEEP_RATE_LIMIT_EXCEEDED'

/**
 * The header field of every answer: it is for one client at one moment.
 *
 * @internal
 */
export const NO_STORE: Readonly<Record<string, string>> = Object.freeze({ 'Cache-Control': 'no-store' })

/** The base of all errors of this package. */
export abstract class DoorkeepError extends Error {
  /** The kind of the error, for code to compare. */
  abstract readonly code: ErrorCode
  /** The HTTP status of the answer, where error handlers of frameworks look for it. Undefined: a bug in the program. */
  declare readonly statusCode: number | undefined
  /** The same as `statusCode`, where other error handlers look for it. */
  declare readonly status: number | undefined
  /** The header fields of the answer, where Express and Fastify look for them. */
  declare readonly headers: Readonly<Record<string, string>> | undefined
  /** Whether the client may read the message. */
  declare readonly expose: boolean
  static {
    describe(DoorkeepError, 'DoorkeepError')
  }
}

/** The configuration or the call is wrong: fix the program. The message names the parameter and the bound. */
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

/**
 * Defines the properties of an error class on its prototype, not enumerable, as for the language's own errors.
 *
 * @internal
 */
export function describe(of: { prototype: object }, name: string, status?: number): void {
  const expose = status !== undefined && status < 500
  const properties = { name, status, statusCode: status, headers: status && NO_STORE, expose }
  for (const [property, value] of Object.entries(properties)) {
    Object.defineProperty(of.prototype, property, { value, configurable: true, writable: true })
  }
}
