/**
 * The memory through which numbers cross. The layout is that of `../../src/slots.rs`, which `tests/node/slots.test.mjs`
 * checks.
 *
 * Invariant: what a native call wrote is read before the next one is made.
 */
import { native } from './binding.js'

/** Keys that the memory has room for; the core decides how many a call accepts. */
export const KEYS = 16
/** Words of one key: rule, four of digest, flags. */
export const KEY_WORDS = 6

/** Where the list of the rules that engaged a lockout begins. */
export const ENGAGED = 16
const NUMBERS = ENGAGED + KEYS

/** A number, by its index. */
export const Slot = {
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
  CallId: 12,
} as const

/** Instead of a moment or a cost: it was left out, so the core's default applies. */
export const LEFT_OUT = -1
/** Instead of a moment or a cost: a value that may be invalid, passed as an argument of the call. */
export const IN_ARGUMENT = -2

export const numbers = new Float64Array(native.memory, 0, NUMBERS)
export const words = new Uint32Array(native.memory, NUMBERS * Float64Array.BYTES_PER_ELEMENT, KEYS * KEY_WORDS)

/** The names of the rules that exist, by the numbers that decisions name them with. */
export const ruleNames: string[] = []

/** The answer of a call that answers yes or no. */
export function flag(): boolean {
  return numbers[Slot.Outcome] === 1
}
