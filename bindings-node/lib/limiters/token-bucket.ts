/** Tokens that refill continuously. Decides nothing: the native module does. */
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

/** What a {@link TokenBucket} can be given. */
export interface TokenBucketOptions extends CommonOptions {
  /** Tokens in a full bucket, and how many come back in one window: 1 to 2^26. */
  readonly rate?: number | undefined
  /** In which time an empty bucket is full again. */
  readonly window?: Duration | undefined
  /** How many buckets are kept. */
  readonly capacity?: number | undefined
  /** Its name in stats and a store's keys: `[a-z0-9-]{1,32}`. Required with a store. */
  readonly name?: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['rate', 'window', 'capacity', 'name', 'store', 'onError', 'clock'])

/**
 * A bucket of tokens for each key, refilled continuously. Answers only yes or no; an empty key is no. A key that is no
 * text is an {@link InvalidKeyError}: a rejection, and thrown by the ...Sync twins. Decided in one step, in memory at the
 * call; with a store the request is sent at the call, its failure is an answer as `onError` says, and the ...Sync twins
 * throw, but for `closeSync`.
 *
 * @example
 * ```ts
 * const bucket = new TokenBucket({ rate: 100, window: '1m' })
 * if (!(await bucket.allow(subject))) return slowDown()
 * ```
 * @throws {@link ConfigError} that names the piece and the bound.
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

  /** Takes one token if there is one. */
  async allow(key: string, at?: At): Promise<boolean> {
    return completed(this.#native.allow(key, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link allow}, at once. */
  allowSync(key: string, at?: At): boolean {
    requireMemory(this.#store)
    const failed = this.#native.allow(key, writeNow(at, this.#clock))
    if (failed !== undefined) raise(failed)
    return flag()
  }

  /**
   * Takes `n` tokens if that many are there. A negative `n` is no, 0 is yes, a fraction is a {@link ConfigError}.
   */
  async allowN(key: string, n: number, at?: At): Promise<boolean> {
    return completed(this.#native.allowN(key, n, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link allowN}, at once. */
  allowNSync(key: string, n: number, at?: At): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.allowN(key, n, writeNow(at, this.#clock)))
    return flag()
  }

  /** The wait in milliseconds until one token is there; null when there is one. Takes nothing. */
  async retryAfterMs(key: string, at?: At): Promise<number | null> {
    return completed(this.#native.retryAfter(key, writeNow(at, this.#clock)), wait, this.#store)
  }

  /** {@link retryAfterMs}, at once. */
  retryAfterMsSync(key: string, at?: At): number | null {
    requireMemory(this.#store)
    unwrap(this.#native.retryAfter(key, writeNow(at, this.#clock)))
    return wait()
  }

  /** Fills the bucket of the key. Answers whether it is forgotten: in memory always, by a store if it was reached. */
  async reset(key: string): Promise<boolean> {
    return completed(this.#native.reset(key), flag, this.#store)
  }

  /** {@link reset}, at once. */
  resetSync(key: string): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.reset(key))
    return flag()
  }

  /** Admits nothing from now on, in this process. Safe to repeat. A store that it was given stays open. */
  async close(): Promise<void> {
    this.closeSync()
  }

  /** {@link close}, at once. */
  closeSync(): void {
    unwrap(this.#native.close())
  }

  /** How many buckets this process itself holds. */
  get size(): number {
    return this.#native.size()
  }

  /** What it has counted so far. */
  stats(): Stats {
    return statsFrom(unwrap(this.#native.stats()))
  }
}
