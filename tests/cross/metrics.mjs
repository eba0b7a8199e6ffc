/** The Node half of test_metrics.py: does the calls that the test does, and prints what Node exposes of them. */
import { AggregationTemporality, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { Limiter, ManualClock, RedisStore, Rule, StrikeRule } from 'doorkeep'
import { instrument } from 'doorkeep/opentelemetry'
import { register } from 'doorkeep/prometheus'
import client from 'prom-client'

class Reader extends MetricReader {
  async onForceFlush() {}
  async onShutdown() {}
  selectAggregationTemporality() {
    return AggregationTemporality.CUMULATIVE
  }
}

const ip = new Rule('login-ip', '20/1m')
const account = new StrikeRule('login-account', { threshold: 2, lockoutWindow: '15m' })

const local = new Limiter({ clock: new ManualClock(1000), capacity: 2 })
for (let n = 0; n < 3; n += 1) local.decideSync([ip.key('ann'), account.key('ann')])
for (const name of ['bob', 'carl']) local.decideSync(ip.key(name))
local.decideSync(ip.key('carl'), { cost: 21 })
const closed = new Limiter({ store: new RedisStore('redis://127.0.0.1:1/0', { onEvent() {} }), onError: 'closed' })
await closed.decide(ip.key('ann'))

const reader = new Reader()
const meter = new MeterProvider({ readers: [reader] }).getMeter('login')
const registry = new client.Registry()
register(local, { registry })
instrument(local, { meter })
register(closed, { registry, name: 'closed' })
instrument(closed, { meter, name: 'closed' })

const { resourceMetrics } = await reader.collect()
const observed = resourceMetrics.scopeMetrics
  .flatMap(({ metrics }) => metrics)
  .flatMap(({ descriptor: { name, description }, isMonotonic, dataPoints }) =>
    dataPoints.map(({ attributes, value }) => ({ name, description, isMonotonic, attributes, value })),
  )
console.log(JSON.stringify({ exposed: await registry.metrics(), observed }))
