/** One native state behind both kinds of module. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { it } from 'node:test'
import * as esm from 'doorkeep'
import * as adapter from 'doorkeep/express'

const require = createRequire(import.meta.url)

it('import and require give the same objects', () => {
  const cjs = require('doorkeep')
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(cjs).sort())
  for (const [name, value] of Object.entries(esm)) assert.equal(value, cjs[name], name)
  assert.equal(adapter.guard, require('doorkeep/express').guard)
})

it('a key made by one kind of module is counted by the other', () => {
  const cjs = require('doorkeep')
  const limiter = new cjs.Limiter()
  const rule = new esm.Rule('login', '1/1h')
  assert.ok(limiter.allowSync(rule.key('a')).allowed)
  assert.equal(limiter.allowSync(new cjs.Rule('login', '1/1h').key('a')).allowed, false)
})

it('the names are those of the documentation', () => {
  assert.deepEqual(Object.keys(esm).sort(), [
    'AttemptDenied',
    'AttemptLimiter',
    'ConfigError',
    'DoorkeepError',
    'FixedWindow',
    'InvalidKeyError',
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
    'network',
  ])
})

it('outcomes are numbers, so that a denial is falsy', () => {
  assert.deepEqual({ ...esm.Outcome }, { Denied: 0, Allowed: 1, AllowedLastAttempt: 2 })
})

it('a fresh copy of the modules works beside the first, as under test runners that reset them', () => {
  const cjs = require('doorkeep')
  for (const path of Object.keys(require.cache)) if (path.includes('bindings-node')) delete require.cache[path]
  const fresh = require('doorkeep')
  assert.notEqual(fresh.Limiter, cjs.Limiter)
  for (const { Limiter, Rule } of [cjs, fresh]) {
    const limiter = new Limiter()
    const rule = new Rule('login', '1/1h')
    assert.deepEqual(
      [1, 2].map(() => limiter.allowSync(rule.key('a')).allowed),
      [true, false],
    )
  }
})
