/** The decision of a limiter, read from the slots. */
import { ENGAGED, numbers, Slot } from '../native/slots.js'

/** The outcome of an attempt. Numbers, so that a denial is falsy. */
export const Outcome = {
  /** Not admitted; nothing was counted. */
  Denied: 0,
  /** Admitted and counted. */
  Allowed: 1,
  /** Admitted and counted, and this attempt engaged a lockout: the next one is denied. */
  AllowedLastAttempt: 2,
} as const

/** The outcome of an attempt, as a number. */
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/**
 * Why an attempt was denied: a rate was used up, a key was locked, a table was full of live lockouts, or the store
 * could not be reached.
 */
export type Reason = 'limited' | 'locked' | 'saturated' | 'unavailable'

const REASONS = [null, 'limited', 'locked', 'saturated', 'unavailable'] as const
const NONE: readonly string[] = Object.freeze([])

/** The decision of a limiter. A denial is a value, never an error. */
export class Decision {
  /** Whether the attempt was admitted. */
  readonly allowed: boolean
  /** Admitted or not, and whether a lockout was engaged. */
  readonly outcome: Outcome
  /** Why it was denied; null when it was admitted. */
  readonly reason: Reason | null
  /** The name of the rule that denied it, the one with the longest wait; null when it was admitted. */
  readonly rule: string | null
  /**
   * Milliseconds until the same attempt would be admitted, in steps of a microsecond. 0 when admitted, null for never.
   */
  readonly retryAfterMs: number | null
  /**
   * The same for a Retry-After header: whole seconds, rounded up, at least 1 on a denial. 0 when admitted, null for
   * never.
   */
  readonly retryAfterSeconds: number | null
  /** How many attempts of cost 1 are left now, the minimum over all rules. */
  readonly remaining: number
  /** Milliseconds until everything is forgotten if no attempt follows, the maximum over all rules. */
  readonly resetAfterMs: number
  /** Whether this process decided alone because its store could not be reached. */
  readonly degraded: boolean
  /** The names of the rules whose lockout this attempt engaged. */
  readonly engaged: readonly string[]

  /**
   * Reads the decision that the latest native call wrote, which names its rules by number.
   *
   * @internal
   */
  constructor(names: readonly string[]) {
    // Whole numbers in 32 bits are kept in the object itself; any other number would be an allocation.
    const outcome = (numbers[Slot.Outcome] | 0) as Outcome
    const seconds = numbers[Slot.RetryAfterSeconds] | 0
    const rule = numbers[Slot.Rule]
    const engaged = numbers[Slot.Engaged]
    this.allowed = outcome !== Outcome.Denied
    this.outcome = outcome
    this.reason = REASONS[numbers[Slot.Reason]]
    this.rule = rule < 0 ? null : names[rule]
    this.retryAfterMs = seconds === 0 ? 0 : milliseconds(numbers[Slot.RetryAfter])
    this.retryAfterSeconds = seconds < 0 ? null : seconds
    this.remaining = numbers[Slot.Remaining] | 0
    this.resetAfterMs = numbers[Slot.ResetAfter] / 1000
    this.degraded = numbers[Slot.Degraded] === 1
    this.engaged =
      engaged === 0 ? NONE : Object.freeze(Array.from(numbers.subarray(ENGAGED, ENGAGED + engaged), (at) => names[at]))
  }
}

/** Reads the wait in milliseconds that a call wrote into the slots; null when there is none. */
export const wait = (): number | null => milliseconds(numbers[Slot.RetryAfter])

/** Converts microseconds to milliseconds; -1 to null. */
export function milliseconds(micros: number): number | null {
  return micros < 0 ? null : micros / 1000
}
