/** The counters in Prometheus and OpenTelemetry, from a scrape over HTTP and from a reader. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AggregationTemporality, DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { ConfigError, FixedWindow, Limiter, ManualClock, Rule, StrikeRule, TokenBucket } from 'doorkeep'
import { DoorkeepStore } from 'doorkeep/express-rate-limit'
import { instrument } from 'doorkeep/opentelemetry'
import { register } from 'doorkeep/prometheus'
import express from 'express5'
import client from 'prom-client'
import { freePort } from './support/redis.mjs'
import { serve } from './support/server.mjs'
import { openStore } from './support/stores.mjs'

const ip = new Rule('login-ip', '20/1m')
const account = new StrikeRule('login-account', { threshold: 2, lockoutWindow: '15m' })
const SECRET = 'ann@example.com'

/** Admits two, denies one as locked and one as limited. */
function busy() {
  const limiter = new Limiter({ clock: new ManualClock(1000) })
  for (let n = 0; n < 3; n += 1) limiter.decideSync([ip.key(SECRET), account.key(SECRET)])
  limiter.decideSync(ip.key(SECRET), { cost: 21 })
  return limiter
}

describe('Prometheus', () => {
  const metrics = () => new client.Registry()
  /** Returns the samples of a scrape over HTTP, in order. */
  const scrape = async (test, registry) => {
    const app = express()
    app.get('/metrics', async (_req, res) => res.type(registry.contentType).send(await registry.metrics()))
    const { origin } = await serve(test, app)
    const text = await (await fetch(`${origin}/metrics`)).text()
    return { text, samples: text.split('\n').filter((line) => line !== '' && !line.startsWith('#')) }
  }

  it('exports what a limiter counts, as counters and a gauge', async (test) => {
    const registry = metrics()
    register(busy(), { registry })
    const { text, samples } = await scrape(test, registry)
    assert.deepEqual(samples, [
      'doorkeep_allowed_total{rule="login-account"} 2',
      'doorkeep_allowed_total{rule="login-ip"} 2',
      'doorkeep_denied_total{rule="login-account",reason="locked"} 1',
      'doorkeep_denied_total{rule="login-ip",reason="limited"} 1',
      'doorkeep_evicted_total 0',
      'doorkeep_tracked_keys 2',
    ])
    assert.deepEqual(text.match(/^# TYPE .*$/gm), [
      '# TYPE doorkeep_allowed_total counter',
      '# TYPE doorkeep_denied_total counter',
      '# TYPE doorkeep_store_failed_total counter',
      '# TYPE doorkeep_evicted_total counter',
      '# TYPE doorkeep_tracked_keys gauge',
    ])
  })

  it('reads the counters at each scrape, even a parallel one, and never adds them up', async (test) => {
    const registry = metrics()
    const limiter = busy()
    register(limiter, { registry })
    await Promise.all(Array.from({ length: 5 }, () => registry.metrics()))
    limiter.decideSync(ip.key('bob'))
    const { samples } = await scrape(test, registry)
    assert.ok(samples.includes('doorkeep_allowed_total{rule="login-ip"} 3'))
  })

  it('counts the calls for which a store could not be reached', async (test) => {
    const registry = metrics()
    const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
    const limiter = new Limiter({ store, onError: 'closed' })
    register(limiter, { registry })
    await limiter.decide(ip.key(SECRET))
    const { samples } = await scrape(test, registry)
    assert.ok(samples.includes('doorkeep_store_failed_total{mode="closed"} 1'), samples.join())
    assert.ok(samples.includes('doorkeep_denied_total{rule="login-ip",reason="unavailable"} 1'), samples.join())
  })

  it('distinguishes limiters of one registry by their names, and refuses a duplicate name', async (test) => {
    const registry = metrics()
    register(busy(), { registry })
    register(busy(), { registry, name: 'search' })
    const { samples } = await scrape(test, registry)
    assert.ok(samples.includes('doorkeep_evicted_total 0'))
    assert.ok(samples.includes('doorkeep_evicted_total{limiter="search"} 0'))
    assert.ok(samples.includes('doorkeep_denied_total{limiter="search",rule="login-ip",reason="limited"} 1'))
    for (const name of [undefined, 'search']) assert.throws(() => register(busy(), { registry, name }), ConfigError)
    register(busy(), { registry: metrics() })
    const again = busy()
    for (let n = 0; n < 2; n += 1) register(again, { registry, name: 'again' })
    assert.equal((await registry.metrics()).match(/evicted_total\{limiter="again"\}/g).length, 1)
  })

  it('accepts every limiter, and nothing without stats', async () => {
    const registry = metrics()
    register(new TokenBucket(), { registry, name: 'bucket' })
    register(new FixedWindow({ limit: 1, window: '1m' }), { registry, name: 'window' })
    register(new DoorkeepStore(), { registry, name: 'store' })
    assert.equal((await registry.metrics()).match(/doorkeep_tracked_keys\{/g).length, 3)
    for (const none of [undefined, null, {}, 5])
      assert.throws(() => register(none, { registry: metrics() }), ConfigError)
    assert.throws(() => register(busy(), { registry: metrics(), name: '' }), ConfigError)
    assert.throws(() => register(busy(), { registries: [registry] }), ConfigError)
  })

  it('fills the global registry by default, again after it was cleared, and in the OpenMetrics format', async (test) => {
    test.after(() => client.register.clear())
    for (let n = 0; n < 2; n += 1) {
      client.register.clear()
      register(busy())
      assert.match(await client.register.metrics(), /^doorkeep_tracked_keys 2$/m)
    }
    const open = new client.Registry(client.Registry.OPENMETRICS_CONTENT_TYPE)
    register(busy(), { registry: open })
    assert.match(await open.metrics(), /^doorkeep_allowed_total\{rule="login-ip"\} 2$/m)
  })

  it('is summed over the processes of a cluster', async () => {
    const workers = await Promise.all(
      [1, 2].map(async () => {
        const registry = metrics()
        register(busy(), { registry })
        return registry.getMetricsAsJSON()
      }),
    )
    const text = await client.AggregatorRegistry.aggregate(workers).metrics()
    assert.match(text, /^doorkeep_allowed_total\{rule="login-ip"\} 4$/m)
    assert.match(text, /^doorkeep_tracked_keys 4$/m)
  })
})

describe('OpenTelemetry', () => {
  class Reader extends MetricReader {
    async onForceFlush() {}
    async onShutdown() {}
    selectAggregationTemporality() {
      return AggregationTemporality.CUMULATIVE
    }
  }
  const open = (test) => {
    const reader = new Reader()
    const provider = new MeterProvider({ readers: [reader] })
    test.after(() => provider.shutdown())
    const read = async () => {
      const { resourceMetrics, errors } = await reader.collect()
      assert.deepEqual(errors, [])
      const found = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics)
      const points = found.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => [descriptor.name, { ...attributes }, value]),
      )
      const kinds = found.map(({ descriptor, dataPointType, isMonotonic }) => {
        assert.equal(dataPointType, DataPointType.SUM)
        return [descriptor.name, isMonotonic]
      })
      return { points, kinds: Object.fromEntries(kinds) }
    }
    return { meter: provider.getMeter('login'), read }
  }

  it('observes what a limiter counts, as sums of which one may fall', async (test) => {
    const { meter, read } = open(test)
    instrument(busy(), { meter })
    const expected = [
      ['doorkeep.allowed', { rule: 'login-account' }, 2],
      ['doorkeep.allowed', { rule: 'login-ip' }, 2],
      ['doorkeep.denied', { rule: 'login-account', reason: 'locked' }, 1],
      ['doorkeep.denied', { rule: 'login-ip', reason: 'limited' }, 1],
      ['doorkeep.evicted', {}, 0],
      ['doorkeep.tracked_keys', {}, 2],
    ]
    for (let n = 0; n < 2; n += 1) assert.deepEqual((await read()).points, expected)
    assert.deepEqual((await read()).kinds, {
      'doorkeep.allowed': true,
      'doorkeep.denied': true,
      'doorkeep.evicted': true,
      'doorkeep.tracked_keys': false,
    })
  })

  it('distinguishes limiters of one meter by their names, and refuses a duplicate name', async (test) => {
    const { meter, read } = open(test)
    instrument(busy(), { meter })
    instrument(busy(), { meter, name: 'search' })
    const { points } = await read()
    const evicted = points.filter(([name]) => name === 'doorkeep.evicted')
    assert.deepEqual(evicted, [
      ['doorkeep.evicted', {}, 0],
      ['doorkeep.evicted', { limiter: 'search' }, 0],
    ])
    for (const name of [undefined, 'search']) assert.throws(() => instrument(busy(), { meter, name }), ConfigError)
    assert.throws(() => instrument({}, { meter, name: 'other' }), ConfigError)
  })

  it('without a provider does nothing', () => {
    instrument(busy())
  })
})
