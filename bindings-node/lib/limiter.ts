/** Several keys, each under its rule, decided in one step. Decides nothing: the native module does. */
import { Attempt } from './attempt.js'
import { answered, inMemory } from './bridge.js'
import { type LimiterConfig, readConfig } from './config.js'
import { Decision } from './decision.js'
import { ConfigError } from './errors.js'
import { raise, sound } from './failure.js'
import { home } from './home.js'
import { type Keys, lay } from './key.js'
import { type Done, type Handle, type NativeLimiter, native } from './native.js'
import { type CallOptions, type Clock, type CommonOptions, callOptions, instant, known, price } from './options.js'
import type { Rule, StrikeRule } from './rule.js'
import { ruleNames, yes } from './slots.js'
import { type Stats, statsFrom } from './stats.js'
import type { RedisStore } from './store.js'

/** What a {@link Limiter} can be given. */
export interface LimiterOptions extends CommonOptions {
  /** How many windows (one per key and rate) are kept, and how many keys of each strike rule. */
  readonly capacity?: number | undefined
}

/** A class of errors. */
// biome-ignore lint/suspicious/noExplicitAny: any constructor will do, whatever it takes
export type ErrorClass = abstract new (...args: any[]) => unknown

/** What a run can be given. */
export interface RunOptions extends CallOptions {
  /** Errors that are an answer, such as a wrong password: the attempt that throws one stays counted. */
  readonly countOn?: readonly ErrorClass[] | undefined
}

/** What a run answers. */
export interface Ran<T> {
  readonly decision: Decision
  /** What the function gave; undefined when the attempt was denied and the function not called. */
  readonly value: T | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['store', 'onError', 'capacity', 'clock'])
const RUN: ReadonlySet<string> = new Set(['cost', 'now', 'countOn'])

/**
 * Decides calls over one or more keys, each under its own rule. All keys are tested before anything is counted: one
 * denial anywhere, and nothing is counted anywhere. A denial is a value, never an error; errors say that the question
 * could not be asked. They are rejections, and thrown by the ...Sync twins. Decided in one step, in memory at the call;
 * with a store the request is sent at the call, its failure is a value as `onError` says, and the ...Sync twins throw.
 *
 * @example
 * ```ts
 * const limiter = new Limiter({ capacity: 100_000 })
 * const attempt = await limiter.attempt([loginIp.ipKey(ip), accountIp.key(email, network(ip))])
 * if (!attempt.allowed) return tooManyAttempts(attempt.decision.retryAfterSeconds)
 * if (await verify(email, password)) await attempt.success({ forgive: [accountIp] })
 * ```
 * @throws {@link ConfigError} that names the piece and the bound.
 */
export class Limiter {
  readonly #native: NativeLimiter
  readonly #store: RedisStore | undefined
  readonly #clock: Clock | undefined
  #rules: Readonly<Record<string, Rule | StrikeRule>> = Object.freeze(Object.create(null))

  constructor(options?: LimiterOptions) {
    const { capacity, ...rest } = known(options, OPTIONS)
    const { store, clock, native: at } = home(rest)
    this.#store = store
    this.#clock = clock
    this.#native = sound(native.limiter(capacity, at))
  }

  /** Makes a limiter, its store and its rules from plain data. Unknown names are refused. */
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

  /** The store that it was given or configured with; undefined in memory. */
  get store(): RedisStore | undefined {
    return this.#store
  }

  /** Counts a call under all of its keys, or denies it. A key named twice is counted once. 1 to 16 keys. */
  async allow(keys: Keys, options?: CallOptions): Promise<Decision> {
    return answered(this.#ask(this.#native.allow, keys, options), decision, this.#store)
  }

  /** {@link allow}, at once. */
  allowSync(keys: Keys, options?: CallOptions): Decision {
    inMemory(this.#store)
    const { cost, now } = callOptions(options)
    const at = instant(now, this.#clock)
    lay(keys)
    const failed = this.#native.allow(price(cost), at)
    if (failed !== undefined) raise(failed)
    return new Decision(ruleNames)
  }

  /** What {@link allow} would answer; counts nothing. */
  async peek(keys: Keys, options?: CallOptions): Promise<Decision> {
    return answered(this.#ask(this.#native.peek, keys, options), decision, this.#store)
  }

  /** {@link peek}, at once. */
  peekSync(keys: Keys, options?: CallOptions): Decision {
    inMemory(this.#store)
    sound(this.#ask(this.#native.peek, keys, options))
    return decision()
  }

  /** Counts an attempt under all of its keys, or denies it, to be settled once its outcome is known. */
  async attempt(keys: Keys, options?: CallOptions): Promise<Attempt> {
    return answered(this.#ask(this.#native.attempt, keys, options), (handle) => this.#attempted(handle), this.#store)
  }

  /** {@link attempt}, at once. */
  attemptSync(keys: Keys, options?: CallOptions): Attempt {
    inMemory(this.#store)
    return this.#attempted(sound(this.#ask(this.#native.attempt, keys, options)))
  }

  /**
   * Runs `fn` inside an attempt. Denied: `fn` is not called. An error that `fn` throws cancels the attempt and is thrown
   * on, unless `countOn` names its class or it is an AbortError: who hangs up has still guessed. An attempt that `fn`
   * does not settle stays counted.
   */
  async run<T>(keys: Keys, fn: (attempt: Attempt) => T | PromiseLike<T>, options?: RunOptions): Promise<Ran<T>> {
    const { countOn, ...call } = runOptions(options)
    const attempt = await this.attempt(keys, call)
    if (!attempt.allowed) return { decision: attempt.decision, value: undefined }
    try {
      return { decision: attempt.decision, value: await fn(attempt) }
    } catch (error) {
      if (!counts(error, countOn)) await attempt.cancel(call.now)
      throw error
    }
  }

  /** {@link run} for a function that is done when it returns. An error that it reports later does not cancel. */
  runSync<T>(keys: Keys, fn: (attempt: Attempt) => T, options?: RunOptions): Ran<T> {
    const { countOn, ...call } = runOptions(options)
    const attempt = this.attemptSync(keys, call)
    if (!attempt.allowed) return { decision: attempt.decision, value: undefined }
    try {
      return { decision: attempt.decision, value: fn(attempt) }
    } catch (error) {
      if (!counts(error, countOn)) attempt.cancelSync(call.now)
      throw error
    }
  }

  /** Forgets the keys, lockouts included. Answers whether they are forgotten: in memory always, by a store if it was reached. */
  async reset(keys: Keys): Promise<boolean> {
    lay(keys)
    return answered(this.#native.reset(), yes, this.#store)
  }

  /** {@link reset}, at once. */
  resetSync(keys: Keys): boolean {
    inMemory(this.#store)
    lay(keys)
    sound(this.#native.reset())
    return yes()
  }

  /** How many windows and strike keys this process itself holds. */
  get size(): number {
    return this.#native.size()
  }

  /** What it has counted so far. */
  stats(): Stats {
    return statsFrom(sound(this.#native.stats()))
  }

  /** Lays the call into the slots and asks. The native functions belong to no object. */
  #ask<T extends Done | Handle>(
    native: (cost: unknown, now: unknown) => T,
    keys: Keys,
    options: CallOptions | undefined,
  ): T {
    const { cost, now } = callOptions(options)
    const at = instant(now, this.#clock)
    lay(keys)
    return native(price(cost), at)
  }

  #attempted(handle: Handle): Attempt {
    return new Attempt(decision(), handle, this.#clock, this.#store)
  }
}

const decision = (): Decision => new Decision(ruleNames)

function runOptions(options: RunOptions | undefined): CallOptions & { countOn: readonly ErrorClass[] } {
  const { countOn, ...call } = known(options, RUN)
  return { ...call, countOn: errorClasses(countOn ?? undefined) }
}

/**
 * Error classes, one or several.
 *
 * @internal
 */
export function errorClasses(countOn: ErrorClass | readonly ErrorClass[] = []): readonly ErrorClass[] {
  const list = Array.isArray(countOn) ? countOn : [countOn]
  if (!list.every((one) => typeof one === 'function')) throw new ConfigError('countOn must list error classes')
  return list
}

/** Of several errors at once one that counts is enough: failing together must not make guesses free. */
function counts(error: unknown, countOn: readonly ErrorClass[]): boolean {
  if (error instanceof AggregateError && error.errors.some((one) => counts(one, countOn))) return true
  return (error instanceof Error && error.name === 'AbortError') || countOn.some((one) => error instanceof one)
}
