/**
 * A guard for issuing tokens: each subject gets a limited number.
 *
 * Knows a provider by its methods alone, and no limiter. Invariant: `check` returns only when the provider answered
 * true, or when the claims have no subject to limit.
 */
import { RateLimitExceeded } from './denied.js'
import { ConfigError } from './errors.js'
import { native } from './native/binding.js'
import { raise } from './native/failure.js'
import { known } from './options/options.js'

/** A limiter by a string key, such as a {@link TokenBucket}. */
export interface RateLimitProvider {
  /** Counts one for this key. Returns whether it may pass. */
  allow(key: string): boolean | Promise<boolean>
  /** {@link allow}, synchronously. Called by {@link IssueGuard.checkSync} when it exists. */
  allowSync?(key: string): boolean
  /**
   * Returns the wait in milliseconds until this key may pass; null when it is unknown. Called after a no when it
   * exists: the {@link RateLimitExceeded} then has the wait.
   */
  retryAfterMs?(key: string): number | null | undefined | Promise<number | null | undefined>
  /** {@link retryAfterMs}, synchronously. Called by {@link IssueGuard.checkSync} when it exists. */
  retryAfterMsSync?(key: string): number | null | undefined
  /** Forgets what was counted for this key. */
  reset(key: string): unknown
  /** Releases the provider's resources. May be called repeatedly. */
  close(): unknown
}

/** Returns the key of some claims. An empty key, null and undefined are not limited. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the application uses as claims
export type KeyOfClaims = (claims: any) => string | number | bigint | null | undefined

/** The options of an {@link IssueGuard}. */
export interface IssueGuardOptions {
  /**
   * Returns the key of some claims; an empty key, null and undefined are not limited. Defaults to
   * {@link keyFromClaims}.
   */
  readonly key?: KeyOfClaims | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['key'])
const UNLIMITED = ''

/**
 * Returns the key under which issuing a token for these claims counts: the first of `sub`, `user_id` and the result of
 * a function `rateLimitKey` that is not empty. Claims are an object or a Map. The key is empty when the claims have no
 * subject: issuing is then not limited. A whole number is used as its digits.
 *
 * @throws {@link InvalidKeyError} when the first that exists is neither a string nor a whole number: skipping it would
 * lift the limit.
 * @throws {@link ConfigError} when the argument is not claims, such as undefined or an encoded token.
 */
export function keyFromClaims(claims: unknown): string {
  if (typeof claims !== 'object' || claims === null) {
    throw new ConfigError(`claims must be an object or a Map, type=\`${claims === null ? 'null' : typeof claims}\``)
  }
  for (const name of ['sub', 'user_id']) {
    const key = textOf(name, claimOf(claims, name))
    if (key !== UNLIMITED) return key
  }
  const own = claimOf(claims, 'rateLimitKey')
  return typeof own === 'function' ? textOf('rateLimitKey', own.call(claims)) : UNLIMITED
}

/**
 * Guards the issuing and refreshing of tokens. Validating a token is never limited. Issuing is limited only where a
 * guard is called.
 *
 * @example
 * ```ts
 * const guard = new IssueGuard(new TokenBucket({ rate: 100, window: '1m' }))
 * await guard.check(claims) // throws: answer 429 and issue nothing
 * const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(secret)
 * ```
 */
export class IssueGuard {
  readonly #provider: RateLimitProvider
  readonly #key: (claims: unknown) => unknown

  /**
   * Accepts the key function alone or as an option.
   *
   * @throws {@link ConfigError} when the provider has no method `allow`.
   */
  constructor(provider: RateLimitProvider, options?: KeyOfClaims | IssueGuardOptions) {
    const { key } = typeof options === 'function' ? { key: options } : known(options, OPTIONS)
    if (typeof provider?.allow !== 'function') {
      throw new ConfigError('a provider must have the methods of RateLimitProvider')
    }
    this.#provider = provider
    this.#key = key ?? keyFromClaims
  }

  /**
   * Counts one token for these claims, or refuses it. Errors of the provider pass through.
   *
   * @throws {@link RateLimitExceeded} when the provider answered false: answer 429 and issue nothing.
   * @throws {@link InvalidKeyError} when the key of the claims is neither a string nor a whole number: answer 400.
   * @throws {@link ConfigError} when the provider answered neither true nor false, or its wait is not a number.
   */
  async check(claims: unknown): Promise<void> {
    const key = textOf('key', this.#key(claims))
    if (key === UNLIMITED || checked(await this.#provider.allow(key))) return
    throw exceeded(await this.#provider.retryAfterMs?.(key))
  }

  /** {@link check}, synchronously. A provider that answers with promises needs an `allowSync` for it. */
  checkSync(claims: unknown): void {
    const key = textOf('key', this.#key(claims))
    if (key === UNLIMITED) return
    const provider = this.#provider
    if (checked(provider.allowSync === undefined ? provider.allow(key) : provider.allowSync(key))) return
    throw exceeded(
      provider.retryAfterMsSync === undefined ? provider.retryAfterMs?.(key) : provider.retryAfterMsSync(key),
    )
  }
}

function checked(answer: unknown): boolean {
  // A promise is truthy: one that is not awaited must not issue.
  if (typeof answer !== 'boolean') {
    throw new ConfigError(`a provider must answer true or false, type=\`${typeof answer}\``)
  }
  return answer
}

function exceeded(wait: unknown): RateLimitExceeded {
  if (wait === undefined || wait === null) return new RateLimitExceeded()
  if (typeof wait === 'number' && wait >= 0) return new RateLimitExceeded({ retryAfterMs: wait })
  throw new ConfigError(`retryAfterMs of a provider must be a number from 0 or null, type=\`${typeof wait}\``)
}

/** Returns a claim by its name: the object's own or its class's, never one from the prototype of all objects. */
function claimOf(claims: object, name: string): unknown {
  if (claims instanceof Map) return claims.get(name)
  for (let at = claims, next: object | null; ; at = next) {
    next = Object.getPrototypeOf(at)
    const isEverybodys = next === null && at !== claims
    if (Object.hasOwn(at, name) && !isEverybodys) return Reflect.get(at, name, claims)
    if (next === null) return undefined
  }
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return String(value)
  return value === undefined || value === null ? UNLIMITED : raise(native.refuseClaim(name))
}
