/**
 * What the exporters of counters share: which series exist, and how they are read from `stats()`.
 *
 * Knows no metrics library. Invariant: a label is the name of a rule, a reason, a mode or a name that the application
 * gave a limiter, never anything made of a key. `doorkeep/_metrics.py` of the Python package has the same series;
 * `tests/cross/test_metrics.py` compares what both export.
 */
import { ConfigError } from '../errors.js'
import type { Stats } from '../limiters/stats.js'

/** A source of counters: every limiter, and the store for express-rate-limit. */
export interface Counting {
  /** Returns what it has counted so far. */
  stats(): Stats
}

/** One number and its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A number for each combination of its labels. */
export interface Measure {
  /** Without the prefix `doorkeep` and the suffix `_total`, which each library writes in its own way. */
  readonly name: string
  readonly help: string
  /** Whether it only grows; otherwise it rises and falls. */
  readonly isCounter: boolean
  readonly labels: readonly string[]
  /** Returns the samples of one limiter. */
  readonly read: (stats: Stats) => readonly Sample[]
}

/** All exported measures. */
export const MEASURES: readonly Measure[] = [
  {
    name: 'allowed',
    help: 'Calls that were admitted, once for each of their rules.',
    isCounter: true,
    labels: ['rule'],
    read: ({ allowed }) => Object.entries(allowed).map(([rule, value]) => ({ labels: { rule }, value })),
  },
  {
    name: 'denied',
    help: 'Calls that were denied, by the rule that denied and the reason.',
    isCounter: true,
    labels: ['rule', 'reason'],
    read: ({ denied }) =>
      Object.entries(denied).flatMap(([rule, reasons]) =>
        Object.entries(reasons).map(([reason, value]) => ({ labels: { rule, reason }, value })),
      ),
  },
  {
    name: 'store_failed',
    help: 'Calls for which the store could not be asked, by what was answered instead.',
    isCounter: true,
    labels: ['mode'],
    read: ({ storeFailed }) => Object.entries(storeFailed).map(([mode, value]) => ({ labels: { mode }, value })),
  },
  {
    name: 'evicted',
    help: 'Live entries that were dropped from memory to make room.',
    isCounter: true,
    labels: [],
    read: ({ evicted }) => [{ labels: {}, value: evicted }],
  },
  {
    name: 'tracked_keys',
    help: 'Entries that this process holds in memory.',
    isCounter: false,
    labels: [],
    read: ({ trackedKeys }) => [{ labels: {}, value: trackedKeys }],
  },
]

/** The label that distinguishes several limiters. */
export const LIMITER = 'limiter'

/** The limiters that are exported together, each under its own name; one of them may have none. */
export class Sources {
  readonly #limiters = new Map<string | undefined, Counting>()

  /** Adds a limiter. Two limiters of one name would be one series with two values. */
  add(limiter: Counting, name: string | undefined): void {
    if (typeof limiter?.stats !== 'function') throw new ConfigError('limiter must have stats')
    if (name !== undefined && (typeof name !== 'string' || name === '')) throw new ConfigError('name must not be empty')
    if ((this.#limiters.get(name) ?? limiter) !== limiter) {
      throw new ConfigError('limiters that are exported together must differ in name')
    }
    this.#limiters.set(name, limiter)
  }

  /** Yields the samples of one measure, or of several that are read at one moment. */
  *samples(...measures: readonly Measure[]): Generator<[Measure, Sample]> {
    for (const [name, limiter] of this.#limiters) {
      const stats = limiter.stats()
      for (const measure of measures) {
        for (const { labels, value } of measure.read(stats)) {
          yield [measure, { labels: name === undefined ? labels : { [LIMITER]: name, ...labels }, value }]
        }
      }
    }
  }
}
