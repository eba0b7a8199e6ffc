/**
 * A store for express-rate-limit, whose requests are then counted by a {@link Limiter}, in memory or over Redis.
 *
 * Knows express-rate-limit by the shape of what it calls, not as a package, so that 7 and 8 are served alike. It is the
 * one adapter that subtracts and reads a clock, since express-rate-limit speaks of hits and of moments where doorkeep
 * speaks of what remains and of waits. Invariant: what cannot be counted is refused, also under `passOnStoreError`.
 * Tested in `tests/node/express-rate-limit.test.mjs` and by express-rate-limit's own tests in `tests/foreign`.
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

/** What a {@link DoorkeepStore} can be given. */
export interface DoorkeepStoreOptions extends LimiterOptions {
  /**
   * The name of its rule in stats and in the store's keys: `[a-z0-9-]{1,32}`, by default `express-rate-limit`. Required
   * with a store, where limits of one name would share one budget.
   */
  readonly name?: string | undefined
}

/** What a {@link DoorkeepStore} reads of the options of `rateLimit`. */
export interface RateLimitOptions {
  /** The period of the rate in milliseconds. */
  readonly windowMs: number
  /** How many requests pass in it. A function is refused. */
  // biome-ignore lint/suspicious/noExplicitAny: the framework's own request and response, which are never looked at
  readonly limit: number | ((request: any, response: any) => unknown)
  /** Whether requests are to pass when the store fails. */
  readonly passOnStoreError?: boolean | undefined
}

/** How far a client has come. */
export interface RateLimitInfo {
  /** Requests that are counted now; one above the limit when this one was refused. */
  readonly totalHits: number
  /** When nothing is counted any more; of a refused request, when the next one passes. Undefined: nobody knows. */
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
 * Counts the requests of `rateLimit`: a burst of `limit`, filling up evenly over `windowMs`, exact under any number of
 * parallel requests. Refused requests are not counted. Of keys only hashes are kept, of at most `capacity` keys.
 *
 * When the store cannot be asked, `onError` answers: this process's memory by default, nobody is limited when `open`, and
 * when `closed` Express answers 503 with Retry-After: 1. A key that is empty or no text is 400. Under `passOnStoreError`
 * these two are refused as above the limit, since what fails must not let everybody pass. `decrement`, which is what
 * `skipFailedRequests` and `skipSuccessfulRequests` call, takes back what this same request counted, and nothing else.
 *
 * @example
 * ```ts
 * app.use(rateLimit({ windowMs: 15 * 60_000, limit: 100, store: new DoorkeepStore() }))
 * ```
 * @throws {@link ConfigError} that names the piece and the bound. A `limit` that is a function fails every request: a
 * store counts before the function is asked.
 */
export class DoorkeepStore {
  /** Whether keys of other instances cannot meet those of this one. */
  readonly localKeys: boolean
  /** What tells its keys from those of other instances over one store. */
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
      // No rate says that nothing passes. One request does here, and is above the limit there.
      this.#limit = limit === 0 ? 1 : limit
      this.#rule = new Rule(this.prefix, [new Rate(this.#limit, windowMs)])
    } catch (error) {
      // Whoever called only logs it, so the requests have to fail by it.
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

  /** Takes back what the request at hand counted last, if it was under this key. */
  async decrement(key: string): Promise<void> {
    const counted = this.#counted.getStore()
    if (counted?.attempt && counted.digest === this.#key(key)?.digest) await counted.attempt.cancel()
  }

  /** How far a client has come; undefined when nothing is counted. Counts nothing. */
  async get(key: string): Promise<RateLimitInfo | undefined> {
    const asked = this.#key(key)
    const decision = asked && (await this.#limiter.peek(asked))
    if (!decision || decision.resetAfterMs === 0) return undefined
    return { totalHits: this.#limit - decision.remaining, resetTime: after(decision.resetAfterMs) }
  }

  /** Forgets a client. */
  async resetKey(key: string): Promise<void> {
    const forgotten = this.#key(key)
    if (forgotten) await this.#limiter.reset(forgotten)
  }

  /** Forgets all clients, and what {@link stats} counted. A {@link ConfigError} with a store, which is never searched. */
  async resetAll(): Promise<void> {
    if (!this.localKeys) throw new ConfigError('keys in a store are reset one by one')
    this.#limiter = new Limiter(this.#options)
  }

  /** What it has counted so far. */
  stats(): Stats {
    return this.#limiter.stats()
  }

  async #count(key: Key): Promise<RateLimitInfo> {
    const counted: Counted = { digest: key.digest }
    // Before anything is awaited, so that it holds where the caller goes on.
    this.#counted.enterWith(counted)
    counted.attempt = await this.#limiter.attempt(key)
    const { decision } = counted.attempt
    if (decision.reason === 'unavailable') throw new LimiterUnavailable(decision)
    if (!decision.allowed) return { totalHits: this.#limit + 1, resetTime: after(decision.retryAfterMs ?? 0) }
    // A store that is out of reach and `open` counts nothing; express-rate-limit takes 0 for a fault.
    return { totalHits: this.#limit - decision.remaining || 1, resetTime: after(decision.resetAfterMs) }
  }

  /** None when there is nothing that could have been counted under it. */
  #key(text: string): Key | undefined {
    try {
      return this.#rule?.key(text)
    } catch (error) {
      if (error instanceof InvalidKeyError) return undefined
      throw error
    }
  }
}

/** The moment in so many milliseconds, by the clock from which express-rate-limit counts back. Never too early. */
function after(milliseconds: number): Date {
  return new Date(Date.now() + Math.ceil(milliseconds))
}
