/** Which errors invalid calls raise, and that an async call never throws. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'

const require = createRequire(import.meta.url)
const doorkeep = require('doorkeep')
const { raise } = require('../../bindings-node/dist/native/failure.js')
const { AttemptLimiter, ConfigError, FixedWindow, Limiter, Rate, Rates, Rule, StrikeRule, TokenBucket } = doorkeep
const decision = new Limiter().decideSync(new Rule('any', '5/1m').key('a'))

it('every error class has its stable code, its name, its status and its bases', () => {
  const expected = {
    ConfigError: ['DOORKEEP_CONFIG', new doorkeep.ConfigError('x')],
    InvalidKeyError: ['DOORKEEP_INVALID_KEY', new doorkeep.InvalidKeyError('x')],
    AttemptDenied: ['DOORKEEP_DENIED', new doorkeep.AttemptDenied(decision)],
    LimiterUnavailable: ['DOORKEEP_UNAVAILABLE', new doorkeep.LimiterUnavailable(decision)],
    RateLimitExceeded: ['DOORKEEP_RATE_LIMIT_EXCEEDED', new doorkeep.RateLimitExceeded()],
  }
  const classes = Object.keys(doorkeep).filter((name) => doorkeep[name].prototype instanceof Error)
  assert.deepEqual(classes.sort(), [...Object.keys(expected), 'DoorkeepError'].sort())
  for (const [name, [code, error]] of Object.entries(expected)) {
    assert.deepEqual([error.code, error.name, error.constructor.name], [code, name, name])
    assert.ok(error instanceof doorkeep.DoorkeepError && error instanceof Error)
    assert.ok(String(error.stack).startsWith(`${name}: `))
  }
  const statuses = Object.values(expected).map(([, { status, statusCode, expose }]) => [status, statusCode, expose])
  assert.deepEqual(statuses, [
    [undefined, undefined, false],
    [400, 400, true],
    [429, 429, true],
    [503, 503, false],
    [429, 429, true],
  ])
  assert.deepEqual(Object.keys(expected.InvalidKeyError[1]), ['code'])
  assert.ok(expected.LimiterUnavailable[1] instanceof doorkeep.AttemptDenied)
  assert.equal(expected.AttemptDenied[1].decision, decision)
})

it('every error code is documented, including that of a bug', () => {
  const page = readFileSync(new URL('../../docs/semantics.md', import.meta.url), 'utf8')
  const types = readFileSync(new URL('../../bindings-node/lib/errors.ts', import.meta.url), 'utf8')
  const codesIn = (text) => [...new Set(text.match(/\bDOORKEEP_[A-Z_]+/g))].sort()
  assert.deepEqual(codesIn(page), codesIn(types))
  assert.throws(() => raise({ failure: { code: 'DOORKEEP_INTERNAL', message: 'a bug' } }), {
    name: 'Error',
    code: 'DOORKEEP_INTERNAL',
    message: 'a bug',
  })
})

it('an AttemptDenied has the header fields of its answer and the keys of the call', () => {
  const [ip, account] = [
    new Rule('ip', '1/90s', { by: ['address'] }),
    new Rule('account', '1/90s', { by: ['account'] }),
  ]
  const { AttemptDenied, LimiterUnavailable } = doorkeep
  for (const [key, roundUp, wait] of [
    [account.key('ann'), undefined, '90'],
    [account.key('ann'), '1m', '120'],
    [ip.ipKey('203.0.113.9'), '1m', '90'],
  ]) {
    const limiter = new Limiter({ clock: () => 0 })
    limiter.decideSync(key)
    for (const [error, message] of [
      [new AttemptDenied(limiter.decideSync(key), { keys: [key], roundUp }), 'attempt denied'],
      [new AttemptDenied(limiter.decideSync(key), { keys: key, roundUp, message: 'slowly' }), 'slowly'],
    ]) {
      assert.deepEqual({ ...error.headers }, { 'Retry-After': wait, 'Cache-Control': 'no-store' })
      assert.deepEqual([error.keys, error.message], [[key], message])
    }
  }
  const never = new Limiter().decideSync(account.key('ann'), { cost: 2 })
  assert.deepEqual(
    [new AttemptDenied(never, 'slowly').message, new LimiterUnavailable(never).message],
    ['slowly', 'limiter unavailable'],
  )
  assert.deepEqual(
    [{ ...new AttemptDenied(never).headers }, new AttemptDenied(never).keys],
    [{ 'Cache-Control': 'no-store' }, []],
  )
  for (const none of [undefined, null, {}, Promise.resolve(never)])
    assert.throws(() => new AttemptDenied(none), ConfigError)
})

const refused =
  (message, Kind = ConfigError) =>
  (error) => {
    assert.ok(error instanceof Kind, String(error))
    assert.equal(error.message, message)
    return true
  }

it('a value that is not a plain object is refused as options and as a moment', async () => {
  for (const odd of [new Date(0), [], new Map([['capacity', 1]]), Promise.resolve(), new Number(5)]) {
    assert.throws(() => new Limiter(odd), refused('options must be a plain object'))
    const strikes = new AttemptLimiter({ threshold: 1, lockoutWindow: '1h' })
    assert.throws(() => strikes.attemptSync('ann', odd), refused('options must be a plain object'))
    await assert.rejects(strikes.attempt('ann', odd), refused('options must be a plain object'))
    assert.equal(strikes.size, 0)
  }
})

it('an unknown option is refused by its name, wherever options are accepted', () => {
  const key = new Rule('any', '5/1m').key('a')
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
  const limiter = new Limiter()
  const attempt = limiter.attemptSync(key)
  for (const call of [
    () => new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', x: 1 }),
    () => new Limiter({ x: 1 }),
    () => new TokenBucket({ x: 1 }),
    () => new FixedWindow({ limit: 5, window: '1m', x: 1 }),
    () => new Rule('any', '5/1m', { x: 1 }),
    () => new StrikeRule('any', { threshold: 5, lockoutWindow: '15m', x: 1 }),
    () => Limiter.fromConfig({ x: 1 }),
    () => Limiter.fromConfig({ rules: { any: { rates: '5/1m', x: 1 } } }),
    () => Limiter.fromConfig({ rules: { any: { threshold: 5, lockoutWindow: '15m', x: 1 } } }),
    () => strikes.attemptSync('a', { x: 1 }),
    () => limiter.decideSync(key, { x: 1 }),
    () => limiter.runSync(key, () => {}, { x: 1 }),
    () => attempt.successSync({ x: 1 }),
    () => attempt.cancelSync({ x: 1 }),
    () => attempt.extendSync(key, { x: 1 }),
  ]) {
    assert.throws(call, refused('unknown option, option=`x`'))
  }
  assert.deepEqual([strikes.size, limiter.size], [0, 1])
})

it('an invalid store is refused, and so is an unknown mode', () => {
  for (const make of [
    (options) => new Limiter(options),
    (options) => new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', ...options }),
    (options) => new TokenBucket(options),
    (options) => new FixedWindow({ limit: 5, window: '1m', ...options }),
  ]) {
    for (const store of [{}, 'redis://127.0.0.1/0', 5, true, '', 0, false]) {
      assert.throws(() => make({ store }), refused('store must be a RedisStore, or left out for memory'))
    }
    assert.throws(() => make({ onError: 'x' }), refused('on error must be local, open or closed, value=`x`'))
    assert.throws(() => make({ clock: 5 }), ConfigError)
    for (const onError of ['local', 'open', 'closed', undefined]) make({ onError })
  }
})

it('an invalid moment is refused, and nothing is counted', () => {
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
  for (const now of [-1, -0.002, 2 ** 52, Number.NaN, Number.POSITIVE_INFINITY, '5', true, {}, 5n]) {
    assert.throws(() => strikes.attemptSync('a', { now }), ConfigError, String(now))
  }
  assert.equal(strikes.size, 0)
})

it('a nested moment and a clock that returns no number are refused', () => {
  const limiter = new Limiter()
  const key = new Rule('any', '5/1m').key('a')
  assert.throws(() => limiter.decideSync(key, { now: { now: 0 } }), ConfigError)
  assert.throws(() => limiter.attemptSync(key).cancelSync({ now: { now: 0 } }), ConfigError)
  assert.equal(limiter.peekSync(key).remaining, 4)
  for (const told of [undefined, null, Number.NaN, '0', {}]) {
    const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', clock: () => told })
    assert.throws(() => strikes.attemptSync('a'), ConfigError, String(told))
    assert.equal(strikes.size, 0)
  }
})

it('the moment may be a number, an option, or left out', () => {
  const strikes = new AttemptLimiter({ threshold: 1, lockoutWindow: '1m' })
  strikes.attemptSync('a', 1000)
  assert.equal(strikes.retryAfterMsSync('a', { now: 2000.5 }), 58_999.5)
  assert.equal(strikes.lockedSync('a', 61_000), false)
  for (const at of [undefined, null, {}, { now: undefined }, { now: null }])
    assert.equal(strikes.lockedSync('a', at), false)
})

it('a value that no rule made is refused as a key', () => {
  const limiter = new Limiter()
  const key = new Rule('any', '5/1m').key('a')
  const error = refused('a key must be made by a rule: rule.key(...) or rule.ipKey(...)')
  for (const keys of [undefined, null, 'a', 5, {}, ['a'], [key, { ...key }], [key, undefined], Object.create(key)]) {
    assert.throws(() => limiter.decideSync(keys), error)
  }
  assert.throws(() => limiter.decideSync([]), refused('a call takes 1 to 16 keys, keys=0'))
  assert.throws(() => limiter.decideSync(Array(17).fill(key)), refused('a call takes 1 to 16 keys, keys=17'))
  assert.throws(() => limiter.decideSync(Array(1000).fill(key)), refused('a call takes 1 to 16 keys, keys=1000'))
  assert.equal(limiter.size, 0)
})

it('two rules of one name that differ are refused by the first call with both', () => {
  const limiter = new Limiter()
  limiter.decideSync(new Rule('login', '5/1m').key('a'))
  limiter.decideSync(new Rule('login', '5/60s').key('a'))
  assert.throws(() => limiter.decideSync(new Rule('login', '6/1m').key('a')), ConfigError)
  assert.equal(limiter.size, 1)
})

it('rates of another type are refused', () => {
  for (const rates of [undefined, null, 5, {}, [], ['x']]) {
    assert.throws(() => new Rates(rates), ConfigError)
    assert.throws(() => new Rule('any', rates), ConfigError)
  }
  assert.throws(() => new Rate(0, '1m'), refused('rate count must be a whole number from 1 to 67108864, value=`0`'))
  assert.throws(() => new Rule(5, '5/1m'), ConfigError)
  assert.throws(() => new Rule('any', '5/1m', { by: [5] }), ConfigError)
  assert.throws(() => new Rule('any', '5/1m', { secret: 5 }), refused('secret must be at least 16 bytes, bytes=0'))
})

describe('an error of an async call is a rejection, never thrown', () => {
  const key = new Rule('any', '5/1m').key('a')
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
  const limiter = new Limiter()
  const bucket = new TokenBucket()
  const window = new FixedWindow({ limit: 5, window: '1m' })
  const attempt = limiter.attemptSync(key)
  for (const [name, call] of Object.entries({
    'AttemptLimiter.attempt': () => strikes.attempt(''),
    'AttemptLimiter.decide': () => strikes.decide(5),
    'AttemptLimiter.reserve': () => strikes.reserve(''),
    'AttemptLimiter.cancel': () => strikes.cancel({}),
    'AttemptLimiter.locked': () => strikes.locked(''),
    'AttemptLimiter.retryAfterMs': () => strikes.retryAfterMs(''),
    'AttemptLimiter.reset': () => strikes.reset(''),
    'AttemptLimiter.refund': () => strikes.refund(''),
    'Limiter.decide': () => limiter.decide(key, { cost: -1 }),
    'Limiter.peek': () => limiter.peek('a'),
    'Limiter.attempt': () => limiter.attempt([]),
    'Limiter.run': () => limiter.run(key, () => {}, { giveBackOn: [5] }),
    'Limiter.reset': () => limiter.reset('a'),
    'Attempt.success': () => attempt.success({ forgive: [5] }),
    'Attempt.cancel': () => attempt.cancel({ now: -1 }),
    'Attempt.extend': () => attempt.extend('a'),
    'TokenBucket.allow': () => bucket.allow(5),
    'TokenBucket.allowN': () => bucket.allowN('a', 1.5),
    'TokenBucket.reset': () => bucket.reset(5),
    'FixedWindow.consume': () => window.consume(''),
    'FixedWindow.reset': () => window.reset(''),
  })) {
    it(name, () => assert.rejects(call(), doorkeep.DoorkeepError))
  }
})

it('every async method has a ...Sync twin', () => {
  const attempt = new Limiter().attemptSync(new Rule('any', '5/1m').key('a'))
  for (const { prototype } of [AttemptLimiter, Limiter, TokenBucket, FixedWindow, attempt.constructor]) {
    const names = Object.getOwnPropertyNames(prototype)
    const isAsync = (name) =>
      Object.getOwnPropertyDescriptor(prototype, name).value?.constructor.name === 'AsyncFunction'
    const asked = names.filter(isAsync)
    assert.ok(asked.length >= 2)
    for (const name of asked) assert.ok(names.includes(`${name}Sync`), name)
  }
})
