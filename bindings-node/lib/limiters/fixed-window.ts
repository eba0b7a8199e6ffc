/** A budget per window that opens at the first attempt. The native module decides. */
import { type NativeFixedWindow, native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { completed, requireMemory } from '../native/promises.js'
import { flag } from '../native/slots.js'
import { type At, type Clock, writeNow } from '../options/call.js'
import { type Duration, known } from '../options/options.js'
import type { RedisStore } from '../store.js'
import { type CommonOptions, commonOptions } from './common-options.js'
import { Decision } from './decision.js'
import { type Stats, statsFrom } from './stats.js'

/** The options of a {@link FixedWindow}. */
export interface FixedWindowOptions extends CommonOptions {
  /** Attempts in one window: 1 to 2^26. */
  readonly limit: number
  /** How long a window stays open after its first attempt. */
  readonly window: Duration
  /** How many keys are kept. */
  readonly maxKeys?: number | undefined
  /** Its name in decisions, stats and a store's keys: `[a-z0-9-]{1,32}`. Required with a store. */
  readonly name?: string | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['limit', 'window', 'maxKeys', 'name', 'store', 'onError', 'clock'])

/**
 * Admits `limit` attempts in a window that opens at the first one, not on the calendar. Up to 2 * limit - 1 attempts
 * can pass inside one window's length across a boundary.
 *
 * An empty key, or one that is not a string, is an {@link InvalidKeyError}: a rejection, and thrown by the ...Sync
 * methods. In memory a call is decided immediately, in one step. With a store the request is sent immediately, a
 * failure is handled as `onError` says, and the ...Sync methods throw.
 *
 * @example
 * ```ts
 * const window = new FixedWindow({ limit: 5, window: '1m' })
 * const decision = await window.consume(username)
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound.
 */
export class FixedWindow {
  readonly #native: NativeFixedWindow
  readonly #store: RedisStore | undefined
  readonly #clock: Clock | undefined
  /** The name of its only rule, as a decision looks it up. */
  readonly #names: readonly string[]
  /** Attempts in one window. */
  readonly limit: number
  /** The length of a window in milliseconds. */
  readonly windowMs: number

  constructor(options: FixedWindowOptions) {
    const { limit, window, maxKeys, name, ...rest } = known(options, OPTIONS)
    const { store, clock, storage } = commonOptions(rest)
    this.#store = store
    this.#clock = clock
    this.#native = unwrap(native.fixedWindow(limit, window, maxKeys, name, storage))
    this.#names = [this.#native.name]
    this.limit = this.#native.limit
    this.windowMs = this.#native.windowMicros / 1000
  }

  /** Counts one attempt, or denies it. */
  async consume(key: string, at?: At): Promise<Decision> {
    return completed(this.#native.consume(key, writeNow(at, this.#clock)), () => this.#decision(), this.#store)
  }

  /** {@link consume}, synchronously. */
  consumeSync(key: string, at?: At): Decision {
    requireMemory(this.#store)
    unwrap(this.#native.consume(key, writeNow(at, this.#clock)))
    return this.#decision()
  }

  /** Returns what {@link consume} would return, with `remaining` as it is now. Counts nothing. */
  async peek(key: string, at?: At): Promise<Decision> {
    return completed(this.#native.peek(key, writeNow(at, this.#clock)), () => this.#decision(), this.#store)
  }

  /** {@link peek}, synchronously. */
  peekSync(key: string, at?: At): Decision {
    requireMemory(this.#store)
    unwrap(this.#native.peek(key, writeNow(at, this.#clock)))
    return this.#decision()
  }

  /** Forgets the key. Returns whether it was forgotten: always in memory, and when a store was reached. */
  async reset(key: string): Promise<boolean> {
    return completed(this.#native.reset(key), flag, this.#store)
  }

  /** {@link reset}, synchronously. */
  resetSync(key: string): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.reset(key))
    return flag()
  }

  /** The number of keys that this process keeps. */
  get size(): number {
    return this.#native.size()
  }

  /** Returns what it has counted so far. */
  stats(): Stats {
    return statsFrom(unwrap(this.#native.stats()))
  }

  #decision(): Decision {
    return new Decision(this.#names)
  }
}
