/** Rates: how much may pass in which time. Kept as the core's canonical text; the core does all arithmetic. */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import type { Duration } from '../options/options.js'

/**
 * A rate: a burst of `count`, then one every `period / count`.
 *
 * @throws {@link ConfigError} when the count is not a whole number from 1 to 2^26, or the period is not one from 1 to
 * 2^48 microseconds.
 */
export class Rate {
  /** How many may pass in one period. */
  readonly count: number
  /** The period in milliseconds. */
  readonly periodMs: number
  readonly #text: string

  constructor(count: number, period: Duration) {
    const rate = unwrap(native.rate(count, period))
    this.count = rate.count
    this.periodMs = rate.periodMicros / 1000
    this.#text = rate.text
  }

  /** Returns the canonical text, such as `5/1m`. */
  toString(): string {
    return this.#text
  }

  toJSON(): string {
    return this.#text
  }
}

/**
 * 1 to 16 rates that apply together, such as `5/1m,50/1h`.
 *
 * @throws {@link ConfigError} that names the part of the text that is wrong.
 */
export class Rates {
  readonly #text: string

  constructor(rates: string | readonly Rate[]) {
    this.#text = unwrap(native.rates(Array.isArray(rates) ? rates.map(String).join(',') : rates))
  }

  /** Returns the most attempts that can pass in any half-open span of this length, from a fresh start. */
  maxIn(span: Duration): number {
    return unwrap(native.ratesMaxIn(this.#text, span))
  }

  /** Returns the canonical text: shortest period first. */
  toString(): string {
    return this.#text
  }

  toJSON(): string {
    return this.#text
  }

  *[Symbol.iterator](): IterableIterator<Rate> {
    for (const text of this.#text.split(',')) {
      const [count, period] = text.split('/')
      yield new Rate(Number(count), period)
    }
  }
}
