/** Tokens that refill continuously. The native module decides. */
import { type NativeTokenBucket, native } from '../native/binding.js'
import { raise, unwrap } from '../native/failure.js'
import { completed, requireMemory } from '../native/promises.js'
import { flag } from '../native/slots.js'
import { type At, type Clock, writeNow } from '../options/call.js'
import { type Duration, known } from '../options/options.js'
import type { RedisStore } from '../store.js'
import { type CommonOptions, commonOptions } from './common-options.js'
import { wait } from './decision.js'
import { type Stats, statsFrom } from './stats.js'

/** The options of a {@link TokenBucket}. */
export interface TokenBucketOptions extends CommonOptions {
  /** The number of tokens in a full bucket, which is also what one window refills: 1 to 2^26. */
  readonly rate?: number | undefined
  /** How long it takes to refill an empty bucket. */
  readonly window?: Duration | undefined
  /** How many buckets are kept. */
  readonly capacity?: number | undefined
  /** Its name in stats and a store's keys: `[a-z0-9-]{1,32}`. Required with a store. */
  readonly name?: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['rate', 'window', 'capacity', 'name', 'store', 'onError', 'clock'])

/**
 * A bucket of tokens for each key, refilled continuously. Answers only yes or no; an empty key is a no. A key that is
 * not a string is an {@link InvalidKeyError}: a rejection, and thrown by the ...Sync methods. In memory a call is
 * decided immediately, in one step. With a store the request is sent immediately, a failure is answered as `onError`
 * says, and the ...Sync methods throw, except `closeSync`.
 *
 * @example
 * ```ts
 * const bucket = new TokenBucket({ rate: 100, window: '1m' })
 * if (!(await bucket.allow(subject))) return slowDown()
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound.
 */
export class TokenBucket {
  readonly #native: NativeTokenBucket
  readonly #store: RedisStore | undefined
  readonly #clock: Clock | undefined

  constructor(options?: TokenBucketOptions) {
    const { rate, window, capacity, name, ...rest } = known(options, OPTIONS)
    const { store, clock, storage } = commonOptions(rest)
    this.#store = store
    this.#clock = clock
    this.#native = unwrap(native.tokenBucket(rate, window, capacity, name, storage))
  }

  /** Takes one token, if there is one. Returns whether there was. */
  async allow(key: string, at?: At): Promise<boolean> {
    return completed(this.#native.allow(key, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link allow}, synchronously. */
  allowSync(key: string, at?: At): boolean {
    requireMemory(this.#store)
    const failed = this.#native.allow(key, writeNow(at, this.#clock))
    if (failed !== undefined) raise(failed)
    return flag()
  }

  /** Takes `n` tokens, if there are as many. A negative `n` is a no, 0 a yes, a fraction a {@link ConfigError}. */
  async allowN(key: string, n: number, at?: At): Promise<boolean> {
    return completed(this.#native.allowN(key, n, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link allowN}, synchronously. */
  allowNSync(key: string, n: number, at?: At): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.allowN(key, n, writeNow(at, this.#clock)))
    return flag()
  }

  /** Returns the wait in milliseconds until there is a token; null when there is one now. Takes nothing. */
  async retryAfterMs(key: string, at?: At): Promise<number | null> {
    return completed(this.#native.retryAfter(key, writeNow(at, this.#clock)), wait, this.#store)
  }

  /** {@link retryAfterMs}, synchronously. */
  retryAfterMsSync(key: string, at?: At): number | null {
    requireMemory(this.#store)
    unwrap(this.#native.retryAfter(key, writeNow(at, this.#clock)))
    return wait()
  }

  /** Fills the bucket of the key. Returns whether it was forgotten: always in memory, and when a store was reached. */
  async reset(key: string): Promise<boolean> {
    return completed(this.#native.reset(key), flag, this.#store)
  }

  /** {@link reset}, synchronously. */
  resetSync(key: string): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.reset(key))
    return flag()
  }

  /** Admits nothing from now on, in this process. Safe to repeat. Does not close its store. */
  async close(): Promise<void> {
    this.closeSync()
  }

  /** {@link close}, synchronously. */
  closeSync(): void {
    unwrap(this.#native.close())
  }

  /** The number of buckets that this process keeps. */
  get size(): number {
    return this.#native.size()
  }

  /** Returns what it has counted so far. */
  stats(): Stats {
    return statsFrom(unwrap(this.#native.stats()))
  }
}
