/** A clock for tests that moves only when a test moves it. */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import type { Duration } from '../options/options.js'

/** Call it to read the time. */
export interface ManualClock {
  /** Returns the time in milliseconds since the Unix epoch. */
  // biome-ignore lint/style/useShorthandFunctionType: only an interface merges with the class
  (): number
}

/**
 * A clock to pass as `clock`, which moves only when `advance` or `set` is called.
 *
 * @example
 * ```ts
 * const clock = new ManualClock(0)
 * const strikes = new AttemptLimiter({ threshold: 3, lockoutWindow: '1m', clock })
 * clock.advance('1m')
 * ```
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the instance is the function that the constructor returns
export class ManualClock extends class {
  constructor(read: () => number) {
    // biome-ignore lint/correctness/noConstructorReturn: a clock is a function, so that a plain function can be one
    return Object.setPrototypeOf(read, new.target.prototype)
  }
} {
  #micros: number

  /** Starts at a moment, in milliseconds since the Unix epoch; by default the epoch. */
  constructor(start = 0) {
    super(() => this.#micros / 1000)
    this.#micros = unwrap(native.now(start))
  }

  /** Moves it forward. */
  advance(duration: Duration): void {
    this.#micros = unwrap(native.now((this.#micros + unwrap(native.span(duration))) / 1000))
  }

  /** Moves it to a moment, in milliseconds since the Unix epoch; moving back is allowed. */
  set(now: number): void {
    this.#micros = unwrap(native.now(now))
  }
}
