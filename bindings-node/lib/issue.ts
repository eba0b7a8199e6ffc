/**
 * A guard for whatever issues tokens: one subject gets only so many.
 *
 * Knows a provider by its methods alone, and no limiter. Invariant: `check` returns only when the provider said true, or
 * when the claims name nobody to limit.
 */
import { RateLimitExceeded } from './denied.js'
import { ConfigError } from './errors.js'
import { native } from './native/binding.js'
import { raise } from './native/failure.js'
import { known } from './options/options.js'

/** Something that limits by a text key, such as a {@link TokenBucket}. */
export interface RateLimitProvider {
  /** Counts one for this key, and says whether it may pass. */
  allow(key: string): boolean | Promise<boolean>
  /** {@link allow}, at once. Asked by {@link IssueGuard.checkSync} when it is there. */
  allowSync?(key: string): boolean
  /**
   * The wait in milliseconds until this key may pass; null when it is unknown. Called after a no when it exists: the
   * {@link RateLimitExceeded} then has the wait.
   */
  retryAfterMs?(key: string): number | null | undefined | Promise<number | null | undefined>
  /** {@link retryAfterMs}, at once. Called by {@link IssueGuard.checkSync} when it exists. */
  retryAfterMsSync?(key: string): number | null | undefined
  /** Forgets what was counted for this key. */
  reset(key: string): unknown
  /** Releases what the provider holds. It may be called again. */
  close(): unknown
}

/** Gives the key of some claims; an empty one, or none, is not limited. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the application calls claims
export type KeyOfClaims = (claims: any) => string | number | bigint | null | undefined

/** What an {@link IssueGuard} can be given. */
export interface IssueGuardOptions {
  /** Gives the key of some claims; an empty one, or none, is not limited. Defaults to {@link keyFromClaims}. */
  readonly key?: KeyOfClaims | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['key'])
const UNLIMITED = ''

/**
 * The key that issuing a token for these claims counts under: `sub`, then `user_id`, then what a function
 * `rateLimitKey` gives; the first that is not empty. Claims are an object or a Map. Empty when they name nobody: their
 * issuing is not limited. A whole number stands as its digits.
 *
 * @throws {@link InvalidKeyError} when the first of them that is there is neither text nor a whole number. Passing over
 * it would lift the limit.
 * @throws {@link ConfigError} when these are no claims, such as undefined or an encoded token.
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
 * Stands before the issuing and the refreshing of tokens. Validating a token is never limited. Issuing is limited only
 * where a guard is asked.
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
   * The key may stand bare or as an option.
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
   * Counts one token for these claims, or refuses it. What the provider throws passes through.
   *
   * @throws {@link RateLimitExceeded} when the provider said false: answer 429 and issue nothing.
   * @throws {@link InvalidKeyError} when the key of the claims is neither text nor a whole number: answer 400.
   * @throws {@link ConfigError} when the provider answered neither true nor false, or its wait is not a number.
   */
  async check(claims: unknown): Promise<void> {
    const key = textOf('key', this.#key(claims))
    if (key === UNLIMITED || checked(await this.#provider.allow(key))) return
    throw exceeded(await this.#provider.retryAfterMs?.(key))
  }

  /** {@link check}, at once. A provider that answers with promises needs an `allowSync` for it. */
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

/** A claim by its name: the object's own or its class's, never one that was put on the prototype of all objects. */
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
