/** One native state for both kinds of module. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { it } from 'node:test'
import * as esm from 'doorkeep'
import { startServer } from './support/redis.mjs'

const require = createRequire(import.meta.url)
const paths = Object.keys(require('../../package.json').exports).filter((path) => !path.endsWith('.json'))

for (const path of paths) {
  it(`import and require give the same objects of ${path}`, async () => {
    const name = path.replace('.', 'doorkeep')
    const [imported, required] = [await import(name), require(name)]
    assert.deepEqual(Object.keys(imported).sort(), Object.keys(required).sort())
    for (const [name, value] of Object.entries(imported)) assert.equal(value, required[name], name)
  })
}

it('a key made by one kind of module is counted by the other', () => {
  const cjs = require('doorkeep')
  const limiter = new cjs.Limiter()
  const rule = new esm.Rule('login', '1/1h')
  assert.ok(limiter.decideSync(rule.key('a')).allowed)
  assert.equal(limiter.decideSync(new cjs.Rule('login', '1/1h').key('a')).allowed, false)
})

it('the names are those of the documentation', () => {
  assert.deepEqual(Object.keys(esm).sort(), [
    'AttemptDenied',
    'AttemptLimiter',
    'ClientIp',
    'ConfigError',
    'DoorkeepError',
    'FixedWindow',
    'InvalidKeyError',
    'IssueGuard',
    'Limiter',
    'LimiterUnavailable',
    'ManualClock',
    'Outcome',
    'Rate',
    'RateLimitExceeded',
    'Rates',
    'RedisStore',
    'Rule',
    'StrikeRule',
    'TokenBucket',
    'canonicalEmail',
    'canonicalUsername',
    'http',
    'keyFromClaims',
    'keysFor',
    'lint',
    'network',
    'presets',
  ])
})

it('outcomes are numbers, so that a denial is falsy', () => {
  assert.deepEqual({ ...esm.Outcome }, { Denied: 0, Allowed: 1, AllowedLastAttempt: 2 })
})

/** A second copy of the package, as under test runners; jest keeps the native module, others load it anew. */
function freshCopy({ keepsNative }) {
  for (const path of Object.keys(require.cache)) {
    const isNative = path.endsWith('.node')
    if (path.includes('bindings-node') && !(isNative && keepsNative)) delete require.cache[path]
  }
  return require('doorkeep')
}

for (const keepsNative of [false, true]) {
  it(`copies of the modules work in one process, the native one ${keepsNative ? 'shared' : 'loaded anew'}`, async (test) => {
    const copies = [require('doorkeep'), freshCopy({ keepsNative })]
    assert.notEqual(copies[0].Limiter, copies[1].Limiter)
    const server = await startServer(test)
    const pending = []
    for (const [index, { Limiter, RedisStore, Rule }] of copies.entries()) {
      const limiter = new Limiter()
      // The same name, but another rule.
      const rule = new Rule('login', `1/${index + 1}h`)
      assert.deepEqual(
        [1, 2].map(() => limiter.decideSync(rule.key('a')).rule),
        [null, 'login'],
      )
      const there = new Limiter({ store: new RedisStore(server.url, { timeout: '5s' }) })
      for (let n = 0; n < 10; n += 1) pending.push(there.decide(rule.key('a')))
    }
    const decisions = await Promise.all(pending)
    for (const copy of [decisions.slice(0, 10), decisions.slice(10)]) {
      assert.equal(copy.filter(({ allowed }) => allowed).length, 1)
      assert.ok(copy.every(({ allowed, degraded, rule }) => !degraded && rule === (allowed ? null : 'login')))
    }
    await assert.rejects(new copies[1].Limiter().decide([]), copies[1].ConfigError)
  })
}
