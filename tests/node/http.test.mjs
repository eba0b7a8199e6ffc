/** HTTP answers of real limiters, and invalid decisions; the rest is in the vectors. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AttemptLimiter, ConfigError, FixedWindow, http, Limiter, lint, presets, Rule } from 'doorkeep'
import { attribute } from './support/answers.mjs'
import { cases } from './support/corpus.mjs'

const rule = new Rule('login', '1/1m', { by: ['account'] })
const now = 0

describe('the answer over HTTP', () => {
  it('accepts the decision of every limiter', () => {
    const limiter = new Limiter()
    const keys = [rule.key('ann')]
    assert.equal(http.status(limiter.decideSync(keys, { now })), 200)
    const denied = limiter.decideSync(keys, { now })
    assert.deepEqual([http.status(denied), http.headers(denied, { keys })], [429, { 'Retry-After': '60' }])
    assert.deepEqual(http.headers(denied, { keys: keys[0] }), { 'Retry-After': '60' })

    const strikes = new AttemptLimiter({ threshold: 1, lockoutWindow: '15m' })
    strikes.attemptSync('ann', now)
    assert.deepEqual(http.headers(strikes.decideSync('ann', now)), { 'Retry-After': '900' })

    const window = new FixedWindow({ limit: 1, window: '1500ms' })
    window.consumeSync('ann', now)
    assert.deepEqual(http.headers(window.consumeSync('ann', now), { roundUp: '1m' }), { 'Retry-After': '60' })
  })

  it('is the same for two accounts at the same step', () => {
    const answers = ['ann', 'bob'].map((account) => {
      const limiter = new Limiter()
      const keys = [rule.key(account)]
      limiter.decideSync(keys, { now })
      return http.headers(limiter.decideSync(keys, { now: 1 }), { keys, rateLimit: true })
    })
    assert.deepEqual(answers[0], answers[1])
  })

  it('refuses a decision that was not awaited, which is not an admission', () => {
    const promise = new Limiter().decide(rule.key('ann'))
    for (const odd of [promise, undefined, null, true, {}, { allowed: true }]) {
      assert.throws(() => http.status(odd), ConfigError)
      assert.throws(() => http.headers(odd), ConfigError)
    }
    return promise
  })

  it('refuses unknown options, invalid keys and steps that are not whole seconds', () => {
    const decision = new Limiter().decideSync(rule.key('ann'))
    assert.throws(() => http.headers(decision, { round_up: 1000 }), /unknown option, option=`round_up`/)
    assert.throws(() => http.headers(decision, { keys: ['ann'] }), ConfigError)
    assert.throws(() => http.headers(decision, { roundUp: 1500 }), /whole seconds, at least 1s, value=`1500ms`/)
    assert.throws(() => http.checkRoundUp(0.5), ConfigError)
    assert.equal(http.checkRoundUp(undefined), undefined)
  })
})

it('every preset is in the vectors', () => {
  const names = cases('presets').map(({ preset }) => attribute(preset))
  assert.deepEqual(Object.keys(presets).sort(), names.sort())
})

it('advice is given on rules only', () => {
  for (const odd of [['login'], [null], [{}], rule, undefined]) assert.throws(() => lint(odd), ConfigError)
  assert.deepEqual(lint([]), [])
})
