/**
 * The options of guards, and the checks that a program fails when it starts and not at the first request.
 *
 * Knows no framework. Tested through each adapter, in `tests/node/guards.test.mjs`.
 */
import { ConfigError } from '../errors.js'
import { checkRoundUp } from '../http.js'
import { ClientIp } from '../identity/client-ip.js'
import { type ErrorClass, errorClasses } from '../limiters/give-back.js'
import { Limiter } from '../limiters/limiter.js'
import type { Duration } from '../options/options.js'
import type { Keys } from '../rules/key.js'
import { KeyRule } from '../rules/rule.js'

/** The options that all guards share. */
export interface CountOptions {
  /** Decides. Guards of one limiter share one attempt per request. */
  readonly limiter: Limiter
  /** How much a request counts on each rate; by default 1. */
  readonly cost?: number | undefined
  /**
   * Adds the fields `RateLimit` and `RateLimit-Policy` to every answer, an allowed one included. They show a stranger
   * how many attempts others have made. By default they are left out.
   */
  readonly rateLimit?: boolean | undefined
}

/** The options of a guard by keys. */
export interface GuardOptions<Request> extends CountOptions {
  /** The keys of a request, made before any account is looked up. An {@link InvalidKeyError} here answers 400. */
  readonly keys: (request: Request) => Keys | PromiseLike<Keys>
  /**
   * Makes Retry-After a multiple of this duration, unless the rule that denied is keyed by an address alone: a stranger
   * then cannot read from the wait how recently others tried an account. Whole seconds, at least 1.
   */
  readonly roundUp?: Duration | undefined
  /**
   * Classes of errors that report a failure of the application rather than a guess, such as a database that is down: an
   * attempt whose handler fails with one is given back, except what was counted on an address alone. By default none.
   */
  readonly giveBackOn?: ErrorClass | readonly ErrorClass[] | undefined
}

/** The options of a guard by addresses, for all routes below it. */
export interface AddressOptions extends CountOptions {
  /** Rules that are `by` the address alone. */
  readonly rules: readonly KeyRule[]
  /** Finds the address of the client; by default the peer, so that no header is believed. */
  readonly clientIp?: ClientIp | undefined
}

const COUNT = ['limiter', 'cost', 'rateLimit']
/** The names of {@link GuardOptions}. */
export const GUARD: ReadonlySet<string> = new Set([...COUNT, 'keys', 'roundUp', 'giveBackOn'])
/** The names of {@link AddressOptions}. */
export const ADDRESSES: ReadonlySet<string> = new Set([...COUNT, 'rules', 'clientIp'])

/**
 * Checks the options of a guard by keys, except its limiter.
 *
 * @throws {@link ConfigError} when `keys` is not a function, `roundUp` is not a duration, or `giveBackOn` lists
 * something that is not a class.
 */
export function checkKeys({ keys, roundUp, giveBackOn }: Omit<GuardOptions<never>, 'limiter'>): void {
  if (typeof keys !== 'function') throw new ConfigError('keys must be a function')
  errorClasses(giveBackOn)
  checkRoundUp(roundUp)
}

/**
 * Checks the options of a guard by addresses, except its limiter.
 *
 * @throws {@link ConfigError} when a rule is not `by` the address alone, or `clientIp` is not a {@link ClientIp}.
 */
export function checkAddresses({ rules, clientIp }: Pick<AddressOptions, 'rules' | 'clientIp'>): void {
  const isList = Array.isArray(rules) && rules.length > 0
  if (!isList || !rules.every(isByAddress)) throw new ConfigError("rules must be rules by ['address']")
  if (clientIp !== undefined && !(clientIp instanceof ClientIp)) throw new ConfigError('clientIp must be a ClientIp')
}

/** Checks that a value is a {@link Limiter}. */
export function checkLimiter(limiter: unknown): asserts limiter is Limiter {
  if (!(limiter instanceof Limiter)) throw new ConfigError('limiter must be a Limiter')
}

function isByAddress(rule: unknown): boolean {
  return rule instanceof KeyRule && rule.by.length === 1 && rule.by[0] === 'address'
}
