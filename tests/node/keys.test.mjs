/** Odd keys are separate keys, whatever they mean to JavaScript. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { AttemptLimiter, FixedWindow, Limiter, Outcome, Rule, StrikeRule, TokenBucket } from 'doorkeep'

const ODD = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '\0',
  'a\0',
  'a',
  ' a',
  'A',
  '\uD800',
  '\uD801',
  '\uDC00',
  '\uFFFD',
  '\uD800\uDC00',
  'é',
  'e\u0301',
  '*',
  '{}',
  'x'.repeat(126),
  'x'.repeat(127),
  'x'.repeat(128),
  'é'.repeat(127),
  'é'.repeat(128),
  `${'x'.repeat(200)}\uD800`,
  `${'x'.repeat(200)}\uD801`,
  'x'.repeat(10_000_000),
  'y'.repeat(10_000_000),
]

it('each odd key has its own strikes', () => {
  const strikes = new AttemptLimiter({ threshold: 2, lockoutWindow: '1h' })
  for (const key of ODD) assert.equal(strikes.attemptSync(key), Outcome.Allowed)
  for (const key of ODD) assert.equal(strikes.attemptSync(key), Outcome.AllowedLastAttempt)
  for (const key of ODD) assert.equal(strikes.attemptSync(key), Outcome.Denied)
  assert.equal(strikes.size, ODD.length)
})

it('each odd key has its own bucket, window and rates', () => {
  const bucket = new TokenBucket({ rate: 1, window: '1h' })
  const window = new FixedWindow({ limit: 1, window: '1h' })
  const limiter = new Limiter()
  const rule = new Rule('any', '1/1h')
  for (const admitted of [true, false]) {
    for (const key of ODD) {
      assert.equal(bucket.allowSync(key), admitted)
      assert.equal(window.consumeSync(key).allowed, admitted)
      assert.equal(limiter.decideSync(rule.key(key)).allowed, admitted)
    }
  }
  assert.deepEqual([bucket.size, window.size, limiter.size], Array(3).fill(ODD.length))
})

it('parts never join: 100,000 random pairs give as many digests', () => {
  const rule = new Rule('any', '5/1m')
  const text = (n) => n.toString(36).replaceAll('0', ' ')
  const pairs = new Map()
  for (let n = 1; pairs.size < 100_000; n += 1) {
    const whole = text(n * 2_654_435_761)
    const at = 1 + (n % (whole.length - 1))
    pairs.set(JSON.stringify([whole.slice(0, at), whole.slice(at)]), [whole.slice(0, at), whole.slice(at)])
  }
  const digests = new Set([...pairs.values()].map((parts) => rule.key(...parts).digest))
  assert.equal(digests.size, pairs.size)
})

describe('a key or part that is empty or not a string is refused before anything is counted', () => {
  const rule = new StrikeRule('any', { threshold: 5, lockoutWindow: '1h' })
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '1h' })
  for (const value of [
    '',
    undefined,
    null,
    5,
    Number.NaN,
    true,
    [],
    ['a'],
    {},
    { toString: () => 'a' },
    Symbol('a'),
    5n,
  ]) {
    it(inspect(value), () => {
      const refused = { code: 'DOORKEEP_INVALID_KEY' }
      assert.throws(() => strikes.attemptSync(value), refused)
      assert.throws(() => rule.key(value), refused)
      assert.throws(() => rule.key('a', value), refused)
      assert.throws(() => rule.ipKey(value), refused)
      assert.equal(strikes.size, 0)
    })
  }
  it('no part at all', () => assert.throws(() => rule.key(), { code: 'DOORKEEP_INVALID_KEY' }))
})

it('a key shows its rule and its digest and never its value', () => {
  const key = new Rule('login', '5/1m').key('ann@example.com')
  assert.deepEqual(JSON.parse(JSON.stringify(key)), { rule: 'login', digest: 'cb58bf5ef793e978fe9b726001cd6266' })
  assert.doesNotMatch(inspect(key, { showHidden: true, depth: 9 }), /ann/)
})

it('a secret is bytes or a string, and changes the digests', () => {
  const secret = 'k'.repeat(32)
  const digest = (options) => new Rule('login', '5/1m', options).key('ann@example.com').digest
  assert.equal(digest({ secret }), '3f9aa888c7fd13aa8f01486f2b2f6a95')
  assert.equal(digest({ secret: Buffer.from(secret) }), digest({ secret }))
  assert.equal(digest({ secret: Buffer.from(`..${secret}`).subarray(2) }), digest({ secret }))
  assert.notEqual(digest({}), digest({ secret }))
})

it('100 addresses of one network are one client, the next network is another', () => {
  const limiter = new Limiter()
  const rule = new StrikeRule('ip', { threshold: 5, lockoutWindow: '1m', by: ['address'] })
  const outcomes = Array.from({ length: 100 }, (_, n) => limiter.decideSync(rule.ipKey(`2001:db8::${n + 1}`)).outcome)
  assert.deepEqual(outcomes.slice(0, 5), [1, 1, 1, 1, 2])
  assert.ok(outcomes.slice(5).every((outcome) => outcome === Outcome.Denied))
  assert.equal(limiter.decideSync(rule.ipKey('2001:db8:0:1::1')).outcome, Outcome.Allowed)
  const wide = new StrikeRule('ip56', { threshold: 1, lockoutWindow: '1m', ipv6Prefix: 56 })
  assert.equal(limiter.decideSync(wide.ipKey('2001:db8::1')).outcome, Outcome.AllowedLastAttempt)
  assert.equal(limiter.decideSync(wide.ipKey('2001:db8:0:1::1')).outcome, Outcome.Denied)
})
