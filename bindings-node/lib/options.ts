/**
 * Reads options: unknown names are refused, values are left to the core.
 *
 * Holds no default value and no bound.
 */
import { ConfigError } from './errors.js'
import { raise } from './failure.js'
import { native } from './native.js'
import { AN_ARGUMENT, LEFT_OUT, numbers, Place } from './slots.js'
import type { RedisStore } from './store.js'

/** A length of time: milliseconds, or text such as `15m`, `1h30m` or `200ms`. At least a microsecond, never rounded. */
export type Duration = number | string

/** Gives the current time in milliseconds since the Unix epoch; fractions carry microseconds. Read once per call. */
export type Clock = () => number

/**
 * What a limiter does when its store cannot be asked: decides by itself in the memory of this process, admits without
 * counting, or admits nobody and says `unavailable`.
 */
export type OnError = 'local' | 'open' | 'closed'

/** What every limiter can be given. */
export interface CommonOptions {
  /** Where the counts live; by default the memory of this process. A limiter with a store has no ...Sync methods. */
  readonly store?: RedisStore | undefined
  /** What to answer when the store cannot be asked; by default what the store says. Has no effect without one. */
  readonly onError?: OnError | undefined
  /** Where the time comes from. Defaults to the store's clock, in memory to a monotonic one anchored to the Unix epoch. */
  readonly clock?: Clock | undefined
}

/** When a call happens. */
export interface AtOptions {
  /** Milliseconds since the Unix epoch, 0 to 2^52 microseconds; fractions carry microseconds. Defaults to the clock. */
  readonly now?: number | undefined
}

/** When a call happens: as an option, or as the bare number of milliseconds. */
export type At = number | AtOptions | undefined

/** What a call over several keys can be given. */
export interface CallOptions extends AtOptions {
  /** How much the call counts on each rate, a whole number from 0. Defaults to 1; 0 only asks. */
  readonly cost?: number | undefined
}

// Without a prototype, so that nothing that was put on everybody's is taken for an option.
const NONE: object = Object.freeze(Object.create(null))
const AT: ReadonlySet<string> = new Set(['now'])

/** The options, none of a name that is not in `names`. What is left out is undefined, whatever all objects inherit. */
export function known<T extends object>(options: T | undefined | null, names: ReadonlySet<string>): T {
  if (options === undefined || options === null) return NONE as T
  if (!isPlain(options)) throw notPlain()
  for (const name of Object.keys(options)) if (!names.has(name)) raise(native.unknownOption(name))
  const own: Record<string, unknown> = {}
  for (const name of names) own[name] = ownValue(options as Record<string, unknown>, name)
  return own as T
}

/**
 * Whether something was written as `{ ... }`: `new Limiter(store)` in place of `new Limiter({ store })` must not count in
 * memory. An object of another realm has another prototype than ours, with nothing behind it either.
 */
export function isPlain(options: unknown): options is object {
  if (typeof options !== 'object' || options === null) return false
  const prototype = Object.getPrototypeOf(options)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

function notPlain(): ConfigError {
  return new ConfigError('options must be a plain object')
}

/** A value of the object itself, and none that it inherits. */
export function ownValue<T>(options: { readonly [name: string]: T }, name: string): T | undefined {
  return Object.hasOwn(options, name) ? options[name] : undefined
}

/**
 * The moment of the next native call, from its options or the limiter's clock. Lies in the slots after this; what is
 * given back is the argument to pass, for the core to refuse when it is no moment.
 */
export function moment(at: At, clock: Clock | undefined): unknown {
  return instant(typeof at === 'object' && at !== null ? known(at, AT).now : at, clock)
}

/** The same for a moment that was taken out of its options before. */
export function instant(given: unknown, clock: Clock | undefined): unknown {
  // A clock that tells nothing is broken: the core must refuse it, and not take the time from elsewhere.
  const now = given ?? (clock && (clock() ?? Number.NaN))
  numbers[Place.Now] = inSlot(now)
  return now
}

/** The cost of the next native call, in the slots after this, and the argument to pass as above. */
export function price(cost: unknown): unknown {
  numbers[Place.Cost] = inSlot(cost)
  return cost
}

function inSlot(given: unknown): number {
  if (given === undefined || given === null) return LEFT_OUT
  return typeof given === 'number' && given >= 0 ? given : AN_ARGUMENT
}

/**
 * The cost and the moment of a call over keys. The same as {@link known}, for a call that takes less time than that: it
 * goes through the names that are there, and not through all that might be.
 */
export function callOptions(options: CallOptions | undefined): CallOptions {
  if (options === undefined || options === null) return NONE
  if (!isPlain(options)) throw notPlain()
  let cost: number | undefined
  let now: number | undefined
  for (const name in options) {
    if (!Object.hasOwn(options, name)) continue
    if (name === 'cost') cost = options.cost
    else if (name === 'now') now = options.now
    else raise(native.unknownOption(name))
  }
  return { cost, now }
}
