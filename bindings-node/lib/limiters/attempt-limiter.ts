/** Strikes and lockout for one key at a time. The native module decides. */
import { ConfigError } from '../errors.js'
import { type Handle, type NativeAttemptLimiter, native } from '../native/binding.js'
import { raise, unwrap } from '../native/failure.js'
import { completed, requireMemory } from '../native/promises.js'
import { flag, numbers, Slot } from '../native/slots.js'
import { type At, type Clock, writeNow } from '../options/call.js'
import { type Duration, known } from '../options/options.js'
import type { RedisStore } from '../store.js'
import { type CommonOptions, commonOptions } from './common-options.js'
import { Decision, type Outcome, wait } from './decision.js'
import { type Stats, statsFrom } from './stats.js'

/** The options of an {@link AttemptLimiter}. */
export interface AttemptLimiterOptions extends CommonOptions {
  /** The attempt that engages the lockout: 1 to 1024. */
  readonly threshold: number
  /** How long the lockout lasts after that attempt, and how long an idle key keeps its strikes. */
  readonly lockoutWindow: Duration
  /** How many keys are kept. At the cap the least recently active key that is not locked is dropped. */
  readonly maxTrackedKeys?: number | undefined
  /** Its name in decisions, stats and a store's keys: `[a-z0-9-]{1,32}`. Required with a store. */
  readonly name?: string | undefined
}

/** What a cancel did. */
export type Cancelled = 'nothing' | 'givenBack' | 'lifted'

/** The result of {@link AttemptLimiter.reserve}. */
export interface Reserved {
  readonly outcome: Outcome
  readonly reservation: Reservation
  readonly decision: Decision
}

const OPTIONS: ReadonlySet<string> = new Set([
  'threshold',
  'lockoutWindow',
  'maxTrackedKeys',
  'name',
  'store',
  'onError',
  'clock',
])
const CANCELLED = ['nothing', 'givenBack', 'lifted'] as const

let handleOf: (reservation: Reservation) => Handle

/** One counted attempt that can be cancelled if it should not have counted. Made by {@link AttemptLimiter.reserve}. */
export class Reservation {
  /** The decision about the attempt. */
  readonly decision: Decision
  readonly #handle: Handle

  /** @internal */
  constructor(decision: Decision, handle: Handle) {
    this.decision = decision
    this.#handle = handle
  }

  static {
    handleOf = (reservation) => {
      if (typeof reservation !== 'object' || reservation === null || !(#handle in reservation)) {
        throw new ConfigError('a reservation must be made by reserve')
      }
      return reservation.#handle
    }
  }
}

/**
 * Counts the attempts of a key and locks it at the threshold, for the lockout window. Denied attempts change nothing:
 * hammering a locked key cannot extend its lockout. Attempts that stay just under one window apart accumulate forever.
 *
 * A key is any string that is not empty; only its hash is kept. An empty key, or one that is not a string, is an
 * {@link InvalidKeyError}: a rejection, and thrown by the ...Sync methods. In memory a call is decided immediately, in
 * one step. With a store the request is sent immediately, a failure is handled as `onError` says, and the ...Sync
 * methods throw.
 *
 * @example
 * ```ts
 * const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
 * if (!(await strikes.attempt(username))) return tooManyAttempts()
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound.
 */
export class AttemptLimiter {
  readonly #native: NativeAttemptLimiter
  readonly #store: RedisStore | undefined
  readonly #clock: Clock | undefined
  /** The name of its only rule, as a decision looks it up. */
  readonly #names: readonly string[]

  constructor(options: AttemptLimiterOptions) {
    const { threshold, lockoutWindow, maxTrackedKeys, name, ...rest } = known(options, OPTIONS)
    const { store, clock, storage } = commonOptions(rest)
    this.#store = store
    this.#clock = clock
    this.#native = unwrap(native.attemptLimiter(threshold, lockoutWindow, maxTrackedKeys, name, storage))
    this.#names = [this.#native.name]
  }

  /** Counts one attempt, or denies it. The outcome of a denial is 0, hence falsy. */
  async attempt(key: string, at?: At): Promise<Outcome> {
    return completed(this.#native.attempt(key, writeNow(at, this.#clock)), outcome, this.#store)
  }

  /** {@link attempt}, synchronously. */
  attemptSync(key: string, at?: At): Outcome {
    requireMemory(this.#store)
    const failed = this.#native.attempt(key, writeNow(at, this.#clock))
    if (failed !== undefined) raise(failed)
    return outcome()
  }

  /** Does the same as {@link attempt}, and returns the whole decision. */
  async decide(key: string, at?: At): Promise<Decision> {
    return completed(this.#native.decide(key, writeNow(at, this.#clock)), () => this.#decision(), this.#store)
  }

  /** {@link decide}, synchronously. */
  decideSync(key: string, at?: At): Decision {
    requireMemory(this.#store)
    unwrap(this.#native.decide(key, writeNow(at, this.#clock)))
    return this.#decision()
  }

  /** Counts one attempt that can be cancelled later, or denies it. To cancel a denied reservation does nothing. */
  async reserve(key: string, at?: At): Promise<Reserved> {
    const reserved = this.#native.reserve(key, writeNow(at, this.#clock))
    return completed(reserved, (handle) => this.#reserved(handle), this.#store)
  }

  /** {@link reserve}, synchronously. */
  reserveSync(key: string, at?: At): Reserved {
    requireMemory(this.#store)
    return this.#reserved(unwrap(this.#native.reserve(key, writeNow(at, this.#clock))))
  }

  /** Takes a reserved attempt back, and lifts the lockout that it engaged. Safe to repeat. */
  async cancel(reservation: Reservation, at?: At): Promise<Cancelled> {
    return completed(this.#native.cancel(handleOf(reservation), writeNow(at, this.#clock)), cancelled, this.#store)
  }

  /** {@link cancel}, synchronously. */
  cancelSync(reservation: Reservation, at?: At): Cancelled {
    requireMemory(this.#store)
    unwrap(this.#native.cancel(handleOf(reservation), writeNow(at, this.#clock)))
    return cancelled()
  }

  /** Returns whether an attempt would be denied. Counts nothing. */
  async locked(key: string, at?: At): Promise<boolean> {
    return completed(this.#native.locked(key, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link locked}, synchronously. */
  lockedSync(key: string, at?: At): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.locked(key, writeNow(at, this.#clock)))
    return flag()
  }

  /**
   * Returns the wait in milliseconds that a denial would have; null when an attempt would be admitted. Counts nothing.
   */
  async retryAfterMs(key: string, at?: At): Promise<number | null> {
    return completed(this.#native.retryAfter(key, writeNow(at, this.#clock)), wait, this.#store)
  }

  /** {@link retryAfterMs}, synchronously. */
  retryAfterMsSync(key: string, at?: At): number | null {
    requireMemory(this.#store)
    unwrap(this.#native.retryAfter(key, writeNow(at, this.#clock)))
    return wait()
  }

  /**
   * Forgets the key, its lockout included. Returns whether it was forgotten: always in memory, and when a store was
   * reached.
   */
  async reset(key: string): Promise<boolean> {
    return completed(this.#native.reset(key), flag, this.#store)
  }

  /** {@link reset}, synchronously. */
  resetSync(key: string): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.reset(key))
    return flag()
  }

  /**
   * Drops the oldest counted attempt of a key that is not locked.
   *
   * @deprecated It cannot know whose attempt it drops: use {@link reserve} and {@link cancel}.
   */
  async refund(key: string, at?: At): Promise<void> {
    await completed(this.#native.refund(key, writeNow(at, this.#clock)), nothing, this.#store)
  }

  /**
   * {@link refund}, synchronously.
   *
   * @deprecated Use {@link reserveSync} and {@link cancelSync}.
   */
  refundSync(key: string, at?: At): void {
    requireMemory(this.#store)
    unwrap(this.#native.refund(key, writeNow(at, this.#clock)))
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

  #reserved(handle: Handle): Reserved {
    const decision = this.#decision()
    return { outcome: decision.outcome, reservation: new Reservation(decision, handle), decision }
  }
}

const outcome = (): Outcome => numbers[Slot.Outcome] as Outcome
const cancelled = (): Cancelled => CANCELLED[numbers[Slot.Outcome]]
const nothing = (): void => {}
