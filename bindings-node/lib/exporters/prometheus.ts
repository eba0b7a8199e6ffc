/**
 * The counters of limiters for prom-client, read at each scrape.
 *
 * Counts nothing itself. Invariant: no series contains a key. Tested in `tests/node/metrics.test.mjs`, and together
 * with the Python package in `tests/cross/test_metrics.py`.
 */
import { Counter, Gauge, type OpenMetricsContentType, type Registry, register as theirs } from 'prom-client'
import { known } from '../options/options.js'
import { type Counting, LIMITER, MEASURES, type Measure, Sources } from './metrics.js'

export type { Counting } from './metrics.js'

/** The options of {@link register}. */
export interface RegisterOptions {
  /** The label `limiter` of its series. Required for all limiters of a registry but one. */
  readonly name?: string | undefined
  /** Where it is registered; by default the global registry of prom-client. */
  readonly registry?: Registry | Registry<OpenMetricsContentType> | undefined
}

type AnyRegistry = NonNullable<RegisterOptions['registry']>

const OPTIONS: ReadonlySet<string> = new Set(['name', 'registry'])
const registered = new WeakMap<AnyRegistry, { readonly sources: Sources; readonly first: object }>()

/**
 * Exports the counts of a limiter: `doorkeep_allowed_total{rule}`, `doorkeep_denied_total{rule,reason}`,
 * `doorkeep_store_failed_total{mode}`, `doorkeep_evicted_total` and `doorkeep_tracked_keys`, each with `limiter` when
 * it has a name. Read from `stats()` at each scrape, which adds nothing to a call. Counts are of this process: sum them
 * over processes, as the `AggregatorRegistry` of prom-client does for a cluster.
 *
 * @example
 * ```ts
 * register(limiter)
 * app.get('/metrics', async (_req, res) => res.type(client.register.contentType).send(await client.register.metrics()))
 * ```
 * @throws {@link ConfigError} when the registry has another limiter of this name, or another one without a name.
 */
export function register(limiter: Counting, options?: RegisterOptions): void {
  const { name, registry = theirs } = known(options, OPTIONS)
  sourcesOf(registry).add(limiter, name)
}

function sourcesOf(registry: AnyRegistry): Sources {
  const before = registered.get(registry)
  // A registry that was cleared meanwhile starts again.
  if (before && registry.getSingleMetric(nameOf(MEASURES[0])) === before.first) return before.sources
  const sources = new Sources()
  const [first] = MEASURES.map((measure) => metric(measure, sources, registry))
  registered.set(registry, { sources, first })
  return sources
}

function nameOf({ name, isCounter }: Measure): string {
  return isCounter ? `doorkeep_${name}_total` : `doorkeep_${name}`
}

function metric(measure: Measure, sources: Sources, registry: AnyRegistry): object {
  const described = {
    name: nameOf(measure),
    help: measure.help,
    labelNames: [LIMITER, ...measure.labels],
    // The type of the list requires registries of one kind, which one registry always is.
    registers: [registry] as Registry[],
  }
  // A counter of prom-client can only be increased: each time from zero by the total.
  const total = (add: (labels: Record<string, string>, value: number) => void): void => {
    for (const [, { labels, value }] of sources.samples(measure)) add(labels, value)
  }
  if (!measure.isCounter) {
    return new Gauge({
      ...described,
      collect() {
        this.reset()
        total((labels, value) => this.set(labels, value))
      },
    })
  }
  return new Counter({
    ...described,
    collect() {
      this.reset()
      total((labels, value) => this.inc(labels, value))
    },
  })
}
