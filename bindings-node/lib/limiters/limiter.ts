/** Several keys, each under its rule, decided in one step. The native module decides. */
import { ConfigError } from '../errors.js'
import { type Done, type Handle, type NativeLimiter, native } from '../native/binding.js'
import { raise, unwrap } from '../native/failure.js'
import { completed, requireMemory } from '../native/promises.js'
import { flag, numbers, ruleNames, Slot } from '../native/slots.js'
import { type CallOptions, type Clock, callOptions, writeCost, writeInstant } from '../options/call.js'
import { known } from '../options/options.js'
import { type Keys, writeKeys } from '../rules/key.js'
import type { Rule, StrikeRule } from '../rules/rule.js'
import type { RedisStore } from '../store.js'
import { Attempt } from './attempt.js'
import { type CommonOptions, commonOptions } from './common-options.js'
import { type LimiterConfig, readConfig } from './config.js'
import { Decision } from './decision.js'
import { type ErrorClass, errorClasses, isNamed } from './give-back.js'
import { type Stats, statsFrom } from './stats.js'

/** The options of a {@link Limiter}. */
export interface LimiterOptions extends CommonOptions {
  /** How many windows (one per key and rate) are kept, and how many keys of each strike rule. */
  readonly capacity?: number | undefined
}

/** The options of {@link Limiter.run}. */
export interface RunOptions extends CallOptions {
  /**
   * Classes of errors that report a failure of the application rather than a guess, such as a database that is down: an
   * attempt that throws one is given back, except what was counted on an address alone. By default none.
   */
  readonly giveBackOn?: ErrorClass | readonly ErrorClass[] | undefined
}

/** The result of {@link Limiter.run}. */
export interface Ran<T> {
  readonly decision: Decision
  /** What the function returned; undefined when the attempt was denied and the function was not called. */
  readonly value: T | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['store', 'onError', 'capacity', 'clock'])
const RUN: ReadonlySet<string> = new Set(['cost', 'now', 'giveBackOn'])

/**
 * Decides calls over one or more keys, each under its own rule. All keys are tested before anything is counted: a
 * denial by any rule counts nothing under any key. A denial is a value, never an error; an error means that the call
 * itself was wrong. Errors are rejections, and thrown by the ...Sync methods. In memory a call is decided immediately,
 * in one step. With a store the request is sent immediately, a failure is handled as `onError` says, and the ...Sync
 * methods throw.
 *
 * @example
 * ```ts
 * const limiter = new Limiter({ capacity: 100_000 })
 * const attempt = await limiter.attempt([loginIp.ipKey(ip), accountIp.key(email, network(ip))])
 * if (!attempt.allowed) return tooManyAttempts(attempt.decision.retryAfterSeconds)
 * if (await verify(email, password)) await attempt.success({ forgive: [accountIp] })
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound.
 */
export class Limiter {
  readonly #native: NativeLimiter
  readonly #store: RedisStore | undefined
  readonly #clock: Clock | undefined
  #rules: Readonly<Record<string, Rule | StrikeRule>> = Object.freeze(Object.create(null))

  constructor(options?: LimiterOptions) {
    const { capacity, ...rest } = known(options, OPTIONS)
    const { store, clock, storage } = commonOptions(rest)
    this.#store = store
    this.#clock = clock
    this.#native = unwrap(native.limiter(capacity, storage))
  }

  /** Makes a limiter, its store and its rules from plain data. Refuses unknown names. */
  static fromConfig(config: LimiterConfig): Limiter {
    const { rules, ...options } = readConfig(config)
    const limiter = new Limiter(options)
    limiter.#rules = rules
    return limiter
  }

  /** The rules that it was configured with, by name. */
  get rules(): Readonly<Record<string, Rule | StrikeRule>> {
    return this.#rules
  }

  /** The store that it was made with; undefined in memory. */
  get store(): RedisStore | undefined {
    return this.#store
  }

  /**
   * Counts a call under all of its keys, or denies it. Accepts 1 to 16 keys; a key that is passed twice is counted
   * once.
   */
  async decide(keys: Keys, options?: CallOptions): Promise<Decision> {
    return completed(this.#ask(this.#native.decide, keys, options), decision, this.#store)
  }

  /** {@link decide}, synchronously. */
  decideSync(keys: Keys, options?: CallOptions): Decision {
    this.#decideNow(keys, options)
    return new Decision(ruleNames)
  }

  /** Counts like {@link decide}, and returns only whether the call is allowed. */
  async allow(keys: Keys, options?: CallOptions): Promise<boolean> {
    return completed(this.#ask(this.#native.decide, keys, options), isAllowed, this.#store)
  }

  /** {@link allow}, synchronously. */
  allowSync(keys: Keys, options?: CallOptions): boolean {
    this.#decideNow(keys, options)
    return isAllowed()
  }

  /** Returns what {@link decide} would return. Counts nothing. */
  async peek(keys: Keys, options?: CallOptions): Promise<Decision> {
    return completed(this.#ask(this.#native.peek, keys, options), decision, this.#store)
  }

  /** {@link peek}, synchronously. */
  peekSync(keys: Keys, options?: CallOptions): Decision {
    requireMemory(this.#store)
    unwrap(this.#ask(this.#native.peek, keys, options))
    return decision()
  }

  /** Counts an attempt under all of its keys, or denies it. Settle it when its outcome is known. */
  async attempt(keys: Keys, options?: CallOptions): Promise<Attempt> {
    return completed(this.#ask(this.#native.attempt, keys, options), (handle) => this.#attempted(handle), this.#store)
  }

  /** {@link attempt}, synchronously. */
  attemptSync(keys: Keys, options?: CallOptions): Attempt {
    requireMemory(this.#store)
    return this.#attempted(unwrap(this.#ask(this.#native.attempt, keys, options)))
  }

  /**
   * Runs `fn` inside an attempt. `fn` is not called when the attempt is denied. An error that `fn` throws passes
   * through and leaves the attempt counted, unless `giveBackOn` names its class. An attempt that `fn` does not settle
   * stays counted, too.
   */
  async run<T>(keys: Keys, fn: (attempt: Attempt) => T | PromiseLike<T>, options?: RunOptions): Promise<Ran<T>> {
    const { giveBackOn, ...call } = runOptions(fn, options)
    const attempt = await this.attempt(keys, call)
    if (!attempt.allowed) return { decision: attempt.decision, value: undefined }
    try {
      return { decision: attempt.decision, value: await fn(attempt) }
    } catch (error) {
      if (isNamed(error, giveBackOn)) await attempt.release(call.now)
      throw error
    }
  }

  /** {@link run} for a function that is done when it returns. An error that it reports later gives nothing back. */
  runSync<T>(keys: Keys, fn: (attempt: Attempt) => T, options?: RunOptions): Ran<T> {
    const { giveBackOn, ...call } = runOptions(fn, options)
    const attempt = this.attemptSync(keys, call)
    if (!attempt.allowed) return { decision: attempt.decision, value: undefined }
    try {
      return { decision: attempt.decision, value: fn(attempt) }
    } catch (error) {
      if (isNamed(error, giveBackOn)) attempt.releaseSync(call.now)
      throw error
    }
  }

  /**
   * Forgets the keys, lockouts included. Returns whether they were forgotten: always in memory, and when a store was
   * reached.
   */
  async reset(keys: Keys): Promise<boolean> {
    writeKeys(keys)
    return completed(this.#native.reset(), flag, this.#store)
  }

  /** {@link reset}, synchronously. */
  resetSync(keys: Keys): boolean {
    requireMemory(this.#store)
    writeKeys(keys)
    unwrap(this.#native.reset())
    return flag()
  }

  /** The number of windows and strike keys that this process keeps. */
  get size(): number {
    return this.#native.size()
  }

  /** Returns what it has counted so far. */
  stats(): Stats {
    return statsFrom(unwrap(this.#native.stats()))
  }

  #decideNow(keys: Keys, options: CallOptions | undefined): void {
    requireMemory(this.#store)
    const { cost, now } = callOptions(options)
    const at = writeInstant(now, this.#clock)
    writeKeys(keys)
    const failed = this.#native.decide(writeCost(cost), at)
    if (failed !== undefined) raise(failed)
  }

  /** Writes the arguments of a call into the slots and calls. Native functions need no `this`. */
  #ask<T extends Done | Handle>(
    native: (cost: unknown, now: unknown) => T,
    keys: Keys,
    options: CallOptions | undefined,
  ): T {
    const { cost, now } = callOptions(options)
    const at = writeInstant(now, this.#clock)
    writeKeys(keys)
    return native(writeCost(cost), at)
  }

  #attempted(handle: Handle): Attempt {
    return new Attempt(decision(), handle, this.#clock, this.#store)
  }
}

const decision = (): Decision => new Decision(ruleNames)
const isAllowed = (): boolean => numbers[Slot.Outcome] !== 0

function runOptions(fn: unknown, options: RunOptions | undefined): CallOptions & { giveBackOn: readonly ErrorClass[] } {
  if (typeof fn !== 'function') throw new ConfigError('fn must be a function')
  const { giveBackOn, ...call } = known(options, RUN)
  return { ...call, giveBackOn: errorClasses(giveBackOn) }
}
