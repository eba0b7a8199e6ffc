/**
 * What one call is given: a moment and a cost. Both cross in the slots where they can.
 *
 * Holds no default value and no bound.
 */
import { native } from '../native/binding.js'
import { raise } from '../native/failure.js'
import { IN_ARGUMENT, LEFT_OUT, numbers, Slot } from '../native/slots.js'
import { isPlain, known, notPlain } from './options.js'

/** Gives the current time in milliseconds since the Unix epoch; fractions carry microseconds. Read once per call. */
export type Clock = () => number

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

const NONE: CallOptions = Object.freeze(Object.create(null))
const AT: ReadonlySet<string> = new Set(['now'])

/**
 * The moment of the next native call, from its options or the limiter's clock. Lies in the slots after this; what is
 * given back is the argument to pass, for the core to refuse when it is no moment.
 */
export function writeNow(at: At, clock: Clock | undefined): unknown {
  return writeInstant(typeof at === 'object' && at !== null ? known(at, AT).now : at, clock)
}

/** The same for a moment that was taken out of its options before. */
export function writeInstant(given: unknown, clock: Clock | undefined): unknown {
  // A clock that tells nothing is broken: the core must refuse it, and not take the time from elsewhere.
  const now = given ?? (clock && (clock() ?? Number.NaN))
  numbers[Slot.Now] = toSlot(now)
  return now
}

/** The cost of the next native call, in the slots after this, and the argument to pass as above. */
export function writeCost(cost: unknown): unknown {
  numbers[Slot.Cost] = toSlot(cost)
  return cost
}

function toSlot(given: unknown): number {
  if (given === undefined || given === null) return LEFT_OUT
  return typeof given === 'number' && given >= 0 ? given : IN_ARGUMENT
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
