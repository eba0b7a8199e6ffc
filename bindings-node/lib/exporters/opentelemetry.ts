/**
 * The counters of limiters for OpenTelemetry, observed when a reader collects.
 *
 * Counts nothing itself. Invariant: no attribute is made of a key. Tested in `tests/node/metrics.test.mjs`, and
 * together with the Python package in `tests/cross/test_metrics.py`.
 */
import { type Meter, metrics, type Observable } from '@opentelemetry/api'
import { known } from '../options/options.js'
import { type Counting, MEASURES, type Measure, Sources } from './metrics.js'

export type { Counting } from './metrics.js'

/** The options of {@link instrument}. */
export interface InstrumentOptions {
  /** The attribute `limiter` of the observations. Required for all limiters of a meter but one. */
  readonly name?: string | undefined
  /**
   * Where the instruments are made; by default the meter `doorkeep` of the global provider, which must be set before.
   */
  readonly meter?: Meter | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['name', 'meter'])
const instrumented = new WeakMap<Meter, Sources>()

/**
 * Exports the counts of a limiter: the counters `doorkeep.allowed` (by `rule`), `doorkeep.denied` (by `rule` and
 * `reason`), `doorkeep.store_failed` (by `mode`) and `doorkeep.evicted`, and `doorkeep.tracked_keys`, which rises and
 * falls; each with `limiter` when it has a name. Read from `stats()` at each collection, which adds nothing to a call.
 * A Prometheus exporter gives them the same names as `doorkeep/prometheus`.
 *
 * @example
 * ```ts
 * instrument(limiter, { meter: provider.getMeter('login') })
 * ```
 * @throws {@link ConfigError} when the meter has another limiter of this name, or another one without a name.
 */
export function instrument(limiter: Counting, options?: InstrumentOptions): void {
  const { name, meter = metrics.getMeter('doorkeep') } = known(options, OPTIONS)
  sourcesOf(meter).add(limiter, name)
}

function sourcesOf(meter: Meter): Sources {
  const before = instrumented.get(meter)
  if (before) return before
  const sources = new Sources()
  instrumented.set(meter, sources)
  const instruments = new Map(MEASURES.map((measure) => [measure, observable(measure, meter)]))
  meter.addBatchObservableCallback(
    (result) => {
      for (const [measure, { labels, value }] of sources.samples(...MEASURES)) {
        result.observe(instruments.get(measure) as Observable, value, labels)
      }
    },
    [...instruments.values()],
  )
  return sources
}

function observable({ name, help, isCounter }: Measure, meter: Meter): Observable {
  const described = { description: help }
  // The keys of several processes add up, which a gauge would not express.
  if (!isCounter) return meter.createObservableUpDownCounter(`doorkeep.${name}`, described)
  return meter.createObservableCounter(`doorkeep.${name}`, described)
}
