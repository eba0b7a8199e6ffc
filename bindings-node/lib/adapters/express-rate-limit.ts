/**
 * A store for express-rate-limit, which counts its requests with a {@link Limiter}, in memory or over Redis.
 *
 * Knows express-rate-limit by the shape of its calls, not as a package, so that 7 and 8 both work. It is the only
 * adapter that subtracts and reads a clock, since express-rate-limit works with hits and moments where doorkeep has
 * what remains and waits. Invariant: what cannot be counted is refused, even under `passOnStoreError`. Tested in
 * `tests/node/express-rate-limit.test.mjs` and by express-rate-limit's own tests in `tests/foreign`.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { LimiterUnavailable } from '../denied.js'
import { ConfigError, InvalidKeyError } from '../errors.js'
import type { Attempt } from '../limiters/attempt.js'
import { Limiter, type LimiterOptions } from '../limiters/limiter.js'
import type { Stats } from '../limiters/stats.js'
import { known } from '../options/options.js'
import type { Key } from '../rules/key.js'
import { Rate } from '../rules/rate.js'
import { Rule } from '../rules/rule.js'

/** The options of a {@link DoorkeepStore}. */
export interface DoorkeepStoreOptions extends LimiterOptions {
  /**
   * The name of its rule in stats and in the store's keys: `[a-z0-9-]{1,32}`, by default `express-rate-limit`. Required
   * with a store, where limits of the same name would share one budget.
   */
  readonly name?: string | undefined
}

/** The options of `rateLimit` that a {@link DoorkeepStore} reads. */
export interface RateLimitOptions {
  /** The period of the rate in milliseconds. */
  readonly windowMs: number
  /** How many requests pass in it. A function is refused. */
  // biome-ignore lint/suspicious/noExplicitAny: the framework's own request and response, which are never read
  readonly limit: number | ((request: any, response: any) => unknown)
  /** Whether requests pass when the store fails. */
  readonly passOnStoreError?: boolean | undefined
}

/** How much of its limit a client has used. */
export interface RateLimitInfo {
  /** Requests that are counted now; one more than the limit when this request was refused. */
  readonly totalHits: number
  /** When everything is forgotten; for a refused request, when the next one passes. Undefined when that is unknown. */
  readonly resetTime: Date | undefined
}

interface Counted {
  readonly digest: string
  attempt?: Attempt
}

const OPTIONS: ReadonlySet<string> = new Set(['name', 'store', 'onError', 'capacity', 'clock'])
const NAME = 'express-rate-limit'
/** Above every limit. */
const REFUSED: RateLimitInfo = Object.freeze({ totalHits: Number.MAX_SAFE_INTEGER, resetTime: undefined })

/**
 * Counts the requests of `rateLimit`: a burst of `limit`, refilled evenly over `windowMs`, exact under any number of
 * parallel requests. Refused requests are not counted. Only hashes of keys are kept, for at most `capacity` keys.
 *
 * When the store cannot be reached, `onError` decides: this process's memory by default; with `open` no client is
 * limited; with `closed` Express answers 503 with Retry-After: 1. A key that is empty or not a string is 400. Under
 * `passOnStoreError` both are refused as above the limit, since a failure must not let every client pass. `decrement`,
 * which `skipFailedRequests` and `skipSuccessfulRequests` call, takes back what this same request counted, and nothing
 * else.
 *
 * @example
 * ```ts
 * app.use(rateLimit({ windowMs: 15 * 60_000, limit: 100, store: new DoorkeepStore() }))
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound. A `limit` that is a function fails every request:
 * a store counts before the function is called.
 */
export class DoorkeepStore {
  /** Whether its keys are separate from those of other instances. */
  readonly localKeys: boolean
  /** What separates its keys from those of other instances over one store. */
  readonly prefix: string
  readonly #options: LimiterOptions
  // By request and not by key: a refused request that takes back "one of its key" would free a guess of another.
  readonly #counted = new AsyncLocalStorage<Counted>()
  #limiter: Limiter
  #limit = 0
  #rule: Rule | undefined
  #fault: unknown = new ConfigError('a DoorkeepStore counts once rateLimit has it')
  #passOnError = false

  constructor(options?: DoorkeepStoreOptions) {
    const { name, ...rest } = known(options, OPTIONS)
    this.localKeys = rest.store === undefined || rest.store === null
    if (!this.localKeys && (name === undefined || name === null)) {
      throw new ConfigError('a DoorkeepStore with a store must have a name')
    }
    this.prefix = name ?? NAME
    this.#options = rest
    this.#limiter = new Limiter(rest)
  }

  /** Takes the rate from the options of `rateLimit`, which calls it. */
  init({ windowMs, limit, passOnStoreError }: RateLimitOptions): void {
    this.#passOnError = passOnStoreError === true
    this.#rule = undefined
    try {
      if (typeof limit === 'function')
        throw new ConfigError('limit must be a number: a store counts before a function is asked')
      // A rate cannot admit nothing. One request is admitted by the rule and is then above the limit.
      this.#limit = limit === 0 ? 1 : limit
      this.#rule = new Rule(this.prefix, [new Rate(this.#limit, windowMs)])
    } catch (error) {
      // The caller only logs it, so the requests must fail with it.
      this.#fault = error
      throw error
    }
  }

  /** Counts a request, or refuses it. */
  async increment(key: string): Promise<RateLimitInfo> {
    try {
      if (!this.#rule) throw this.#fault
      return await this.#count(this.#rule.key(key))
    } catch (error) {
      if (this.#passOnError) return REFUSED
      throw error
    }
  }

  /** Takes back what the current request counted last, if it was under this key. */
  async decrement(key: string): Promise<void> {
    const counted = this.#counted.getStore()
    if (counted?.attempt && counted.digest === this.#key(key)?.digest) await counted.attempt.cancel()
  }

  /** Returns how much of its limit a client has used; undefined when nothing is counted. Counts nothing. */
  async get(key: string): Promise<RateLimitInfo | undefined> {
    const made = this.#key(key)
    const decision = made && (await this.#limiter.peek(made))
    if (!decision || decision.resetAfterMs === 0) return undefined
    return { totalHits: this.#limit - decision.remaining, resetTime: after(decision.resetAfterMs) }
  }

  /** Forgets a client. */
  async resetKey(key: string): Promise<void> {
    const forgotten = this.#key(key)
    if (forgotten) await this.#limiter.reset(forgotten)
  }

  /**
   * Forgets all clients, and what {@link stats} counted. A {@link ConfigError} with a store, whose keys are never
   * searched.
   */
  async resetAll(): Promise<void> {
    if (!this.localKeys) throw new ConfigError('keys in a store are reset one by one')
    this.#limiter = new Limiter(this.#options)
  }

  /** Returns what it has counted so far. */
  stats(): Stats {
    return this.#limiter.stats()
  }

  async #count(key: Key): Promise<RateLimitInfo> {
    const counted: Counted = { digest: key.digest }
    // Before the first await, so that the caller's continuation sees it.
    this.#counted.enterWith(counted)
    counted.attempt = await this.#limiter.attempt(key)
    const { decision } = counted.attempt
    if (decision.reason === 'unavailable') throw new LimiterUnavailable(decision)
    if (!decision.allowed) return { totalHits: this.#limit + 1, resetTime: after(decision.retryAfterMs ?? 0) }
    // With an unreachable store and `open` nothing is counted; express-rate-limit takes 0 for a fault.
    return { totalHits: this.#limit - decision.remaining || 1, resetTime: after(decision.resetAfterMs) }
  }

  /** Undefined when nothing can have been counted under it. */
  #key(text: string): Key | undefined {
    try {
      return this.#rule?.key(text)
    } catch (error) {
      if (error instanceof InvalidKeyError) return undefined
      throw error
    }
  }
}

/** Returns the moment in so many milliseconds, by the clock that express-rate-limit subtracts from. Never too early. */
function after(milliseconds: number): Date {
  return new Date(Date.now() + Math.ceil(milliseconds))
}
