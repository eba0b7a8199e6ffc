/** A budget per window that opens at the first attempt. Decides nothing: the native module does. */
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

/** What a {@link FixedWindow} can be given. */
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
 * So many attempts in a window that opens at the first one, not on the calendar. Up to 2 * limit - 1 attempts can land
 * inside one window's length across a boundary.
 *
 * An empty key or one that is no text is an {@link InvalidKeyError}: a rejection, and thrown by the ...Sync twins.
 * Decided in one step, in memory at the call; with a store the request is sent at the call, its failure is a value as
 * `onError` says, and the ...Sync twins throw.
 *
 * @example
 * ```ts
 * const window = new FixedWindow({ limit: 5, window: '1m' })
 * const decision = await window.consume(username)
 * ```
 * @throws {@link ConfigError} that names the piece and the bound.
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

  /** {@link consume}, at once. */
  consumeSync(key: string, at?: At): Decision {
    requireMemory(this.#store)
    unwrap(this.#native.consume(key, writeNow(at, this.#clock)))
    return this.#decision()
  }

  /** What {@link consume} would answer, with what is left as it is now. Counts nothing. */
  async peek(key: string, at?: At): Promise<Decision> {
    return completed(this.#native.peek(key, writeNow(at, this.#clock)), () => this.#decision(), this.#store)
  }

  /** {@link peek}, at once. */
  peekSync(key: string, at?: At): Decision {
    requireMemory(this.#store)
    unwrap(this.#native.peek(key, writeNow(at, this.#clock)))
    return this.#decision()
  }

  /** Forgets the key. Answers whether it is forgotten: in memory always, by a store if it was reached. */
  async reset(key: string): Promise<boolean> {
    return completed(this.#native.reset(key), flag, this.#store)
  }

  /** {@link reset}, at once. */
  resetSync(key: string): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.reset(key))
    return flag()
  }

  /** How many keys this process itself holds. */
  get size(): number {
    return this.#native.size()
  }

  /** What it has counted so far. */
  stats(): Stats {
    return statsFrom(unwrap(this.#native.stats()))
  }

  #decision(): Decision {
    return new Decision(this.#names)
  }
}
