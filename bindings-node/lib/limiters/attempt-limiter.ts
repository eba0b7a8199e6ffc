/** Strikes and lockout for one key at a time. Decides nothing: the native module does. */
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

/** What an {@link AttemptLimiter} can be given. */
export interface AttemptLimiterOptions extends CommonOptions {
  /** The attempt that engages the lockout: 1 to 1024. */
  readonly threshold: number
  /** How long the lockout lasts after that attempt, and how long a quiet key keeps its strikes. */
  readonly lockoutWindow: Duration
  /** How many keys are kept; at the cap the least recently active key that is not locked is dropped. */
  readonly maxTrackedKeys?: number | undefined
  /** Its name in decisions, stats and a store's keys: `[a-z0-9-]{1,32}`. Required with a store. */
  readonly name?: string | undefined
}

/** What a cancel did. */
export type Cancelled = 'nothing' | 'givenBack' | 'lifted'

/** What {@link AttemptLimiter.reserve} answers. */
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

/** One counted attempt, to be cancelled if it should not have counted. Made by {@link AttemptLimiter.reserve}. */
export class Reservation {
  /** The answer that the attempt got. */
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
 * hammering a locked key cannot extend its lockout. Attempts that stay just under one window apart accumulate for ever.
 *
 * Keys are any texts that are not empty; only their hash is kept. An empty key or one that is no text is an
 * {@link InvalidKeyError}: a rejection, and thrown by the ...Sync twins. Decided in one step, in memory at the call; with
 * a store the request is sent at the call, its failure is a value as `onError` says, and the ...Sync twins throw.
 *
 * @example
 * ```ts
 * const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
 * if (!(await strikes.attempt(username))) return tooManyAttempts()
 * ```
 * @throws {@link ConfigError} that names the piece and the bound.
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

  /** Counts one attempt, or denies it. The outcome of a denial is 0 and so falsy. */
  async attempt(key: string, at?: At): Promise<Outcome> {
    return completed(this.#native.attempt(key, writeNow(at, this.#clock)), outcome, this.#store)
  }

  /** {@link attempt}, at once. */
  attemptSync(key: string, at?: At): Outcome {
    requireMemory(this.#store)
    const failed = this.#native.attempt(key, writeNow(at, this.#clock))
    if (failed !== undefined) raise(failed)
    return outcome()
  }

  /** The same as {@link attempt}, with the whole answer. */
  async decide(key: string, at?: At): Promise<Decision> {
    return completed(this.#native.decide(key, writeNow(at, this.#clock)), () => this.#decision(), this.#store)
  }

  /** {@link decide}, at once. */
  decideSync(key: string, at?: At): Decision {
    requireMemory(this.#store)
    unwrap(this.#native.decide(key, writeNow(at, this.#clock)))
    return this.#decision()
  }

  /** Counts one attempt, or denies it, so that it can be cancelled later. A denied reservation cancels nothing. */
  async reserve(key: string, at?: At): Promise<Reserved> {
    const reserved = this.#native.reserve(key, writeNow(at, this.#clock))
    return completed(reserved, (handle) => this.#reserved(handle), this.#store)
  }

  /** {@link reserve}, at once. */
  reserveSync(key: string, at?: At): Reserved {
    requireMemory(this.#store)
    return this.#reserved(unwrap(this.#native.reserve(key, writeNow(at, this.#clock))))
  }

  /** Takes a reserved attempt back, and lifts the lockout that it engaged. Safe to repeat. */
  async cancel(reservation: Reservation, at?: At): Promise<Cancelled> {
    return completed(this.#native.cancel(handleOf(reservation), writeNow(at, this.#clock)), cancelled, this.#store)
  }

  /** {@link cancel}, at once. */
  cancelSync(reservation: Reservation, at?: At): Cancelled {
    requireMemory(this.#store)
    unwrap(this.#native.cancel(handleOf(reservation), writeNow(at, this.#clock)))
    return cancelled()
  }

  /** Whether an attempt would be denied. Counts nothing. */
  async locked(key: string, at?: At): Promise<boolean> {
    return completed(this.#native.locked(key, writeNow(at, this.#clock)), flag, this.#store)
  }

  /** {@link locked}, at once. */
  lockedSync(key: string, at?: At): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.locked(key, writeNow(at, this.#clock)))
    return flag()
  }

  /** The wait in milliseconds that an attempt would be told; null when it would be admitted. Counts nothing. */
  async retryAfterMs(key: string, at?: At): Promise<number | null> {
    return completed(this.#native.retryAfter(key, writeNow(at, this.#clock)), wait, this.#store)
  }

  /** {@link retryAfterMs}, at once. */
  retryAfterMsSync(key: string, at?: At): number | null {
    requireMemory(this.#store)
    unwrap(this.#native.retryAfter(key, writeNow(at, this.#clock)))
    return wait()
  }

  /** Forgets the key, its lockout included. Answers whether it is forgotten: in memory always, by a store if it was reached. */
  async reset(key: string): Promise<boolean> {
    return completed(this.#native.reset(key), flag, this.#store)
  }

  /** {@link reset}, at once. */
  resetSync(key: string): boolean {
    requireMemory(this.#store)
    unwrap(this.#native.reset(key))
    return flag()
  }

  /**
   * Drops the oldest counted attempt of a key that is not locked.
   *
   * @deprecated It cannot tell whose attempt it drops: use {@link reserve} and {@link cancel}.
   */
  async refund(key: string, at?: At): Promise<void> {
    await completed(this.#native.refund(key, writeNow(at, this.#clock)), nothing, this.#store)
  }

  /**
   * {@link refund}, at once.
   *
   * @deprecated Use {@link reserveSync} and {@link cancelSync}.
   */
  refundSync(key: string, at?: At): void {
    requireMemory(this.#store)
    unwrap(this.#native.refund(key, writeNow(at, this.#clock)))
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

  #reserved(handle: Handle): Reserved {
    const decision = this.#decision()
    return { outcome: decision.outcome, reservation: new Reservation(decision, handle), decision }
  }
}

const outcome = (): Outcome => numbers[Slot.Outcome] as Outcome
const cancelled = (): Cancelled => CANCELLED[numbers[Slot.Outcome]]
const nothing = (): void => {}
