/**
 * The memory through which numbers cross: the places are those of `../src/slots.rs`.
 *
 * Invariant: what a native call wrote is read before the next one is made.
 */
import { native } from './binding.js'

/** Keys that the memory has room for; the core says how many a call takes. */
export const KEYS = 16
/** Words of one key: rule, four of digest, flags. */
export const KEY_WORDS = 6

/** Where the list of the rules that engaged a lockout begins. */
export const ENGAGED = 16
const NUMBERS = ENGAGED + KEYS

/** Where the numbers of an answer lie. */
export const Place = {
  Outcome: 0,
  Reason: 1,
  Rule: 2,
  RetryAfter: 3,
  RetryAfterSeconds: 4,
  Remaining: 5,
  ResetAfter: 6,
  Degraded: 7,
  Engaged: 8,
  Now: 9,
  Cost: 10,
  Keys: 11,
  Ticket: 12,
} as const

/** In the place of a moment or a cost: left out, so the core's default holds. */
export const LEFT_OUT = -1
/** In the place of a moment or a cost: something that may be none; it is an argument of the call. */
export const AN_ARGUMENT = -2

export const numbers = new Float64Array(native.memory, 0, NUMBERS)
export const words = new Uint32Array(native.memory, NUMBERS * Float64Array.BYTES_PER_ELEMENT, KEYS * KEY_WORDS)

/** The names of the rules that exist, by their numbers: a decision names its rules so. */
export const ruleNames: string[] = []

/** The answer of a call that says yes or no. */
export function yes(): boolean {
  return numbers[Place.Outcome] === 1
}
