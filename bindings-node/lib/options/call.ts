/**
 * The arguments of one call: a moment and a cost. Valid numbers cross in the slots.
 *
 * Has no default value and no bound.
 */
import { native } from '../native/binding.js'
import { raise } from '../native/failure.js'
import { IN_ARGUMENT, LEFT_OUT, numbers, Slot } from '../native/slots.js'
import { isPlain, known, notPlain } from './options.js'

/** Returns the current time in milliseconds since the Unix epoch; fractions are microseconds. Called once per call. */
export type Clock = () => number

/** When a call happens. */
export interface AtOptions {
  /** Milliseconds since the Unix epoch, 0 to 2^52 microseconds; fractions are microseconds. Defaults to the clock. */
  readonly now?: number | undefined
}

/** When a call happens: as an option, or a number of milliseconds alone. */
export type At = number | AtOptions | undefined

/** The options of a call over several keys. */
export interface CallOptions extends AtOptions {
  /** How much the call counts on each rate, a whole number from 0. Defaults to 1; 0 only tests. */
  readonly cost?: number | undefined
}

const NONE: CallOptions = Object.freeze(Object.create(null))
const AT: ReadonlySet<string> = new Set(['now'])

/**
 * Writes the moment of the next native call into its slot, from the options or the limiter's clock. Returns the
 * argument to pass, which the core refuses when it is not a moment.
 */
export function writeNow(at: At, clock: Clock | undefined): unknown {
  return writeInstant(typeof at === 'object' && at !== null ? known(at, AT).now : at, clock)
}

/** Like {@link writeNow}, for a moment that was already read from its options. */
export function writeInstant(given: unknown, clock: Clock | undefined): unknown {
  // A clock that returns nothing is broken: the core must refuse it, rather than use another clock.
  const now = given ?? (clock && (clock() ?? Number.NaN))
  numbers[Slot.Now] = toSlot(now)
  return now
}

/** Writes the cost of the next native call into its slot. Returns the argument to pass, as {@link writeNow} does. */
export function writeCost(cost: unknown): unknown {
  numbers[Slot.Cost] = toSlot(cost)
  return cost
}

function toSlot(given: unknown): number {
  if (given === undefined || given === null) return LEFT_OUT
  return typeof given === 'number' && given >= 0 ? given : IN_ARGUMENT
}

/**
 * Reads the cost and the moment of a call over keys. Does the same as {@link known} in less time, which matters on this
 * path: it visits the properties that exist, not all that might.
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
