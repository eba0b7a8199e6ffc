/** Limiters over a healthy store: one budget, the rules of memory, what a store refuses and reports. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import {
  AttemptLimiter,
  ConfigError,
  FixedWindow,
  InvalidKeyError,
  Limiter,
  ManualClock,
  Outcome,
  RedisStore,
  Rule,
  StrikeRule,
  TokenBucket,
} from 'doorkeep'
import { freePort, launch } from './support/redis.mjs'
import { runScript } from './support/scripts.mjs'
import { atOnce, inTime, many, openStore, until } from './support/stores.mjs'

const NOWHERE = 'redis://127.0.0.1:1/0'
const refused = (message) => (error) => error instanceof ConfigError && error.message === message

describe('a store that is made', () => {
  it('checks its URL and never shows it', () => {
    const message = 'redis url must read redis://[user:password@]host[:port][/database], rediss://... or unix:///path'
    for (const url of [
      undefined,
      null,
      5,
      '',
      'sesame',
      'http://sesame@127.0.0.1',
      'redis://:sesame@127.0.0.1:x/0',
      {},
    ]) {
      assert.throws(() => new RedisStore(url), refused(message), String(url))
    }
  })

  it('checks its options, with the texts of the core', () => {
    const make = (options) => () => new RedisStore(NOWHERE, options)
    assert.throws(make({ x: 1 }), refused('unknown option, option=`x`'))
    assert.throws(make({ onError: 'x' }), refused('on error must be local, open or closed, value=`x`'))
    for (const options of [
      ...['', 'a b', 'x'.repeat(65), 5, true].map((prefix) => ({ prefix })),
      ...[0, -1, '61s', 'x', Number.NaN, true].map((timeout) => ({ timeout })),
      ...['x', 5, true].map((clock) => ({ clock })),
      ...[5, 'x', true, {}].map((onEvent) => ({ onEvent })),
    ]) {
      assert.throws(make(options), ConfigError, JSON.stringify(options))
    }
    assert.throws(() => new RedisStore(NOWHERE, 5), ConfigError)
    for (const nothing of [undefined, null]) {
      const options = { prefix: nothing, timeout: nothing, onError: nothing, clock: nothing, onEvent: nothing }
      assert.ok(new RedisStore(NOWHERE, options))
    }
  })

  it('requires a name of limiters whose keys have none', () => {
    const store = new RedisStore(NOWHERE)
    for (const make of [
      () => new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', store }),
      () => new TokenBucket({ store }),
      () => new FixedWindow({ limit: 5, window: '1m', store }),
    ]) {
      assert.throws(make, refused('name is required with a store'))
    }
    assert.throws(() => new TokenBucket({ store, name: 'No' }), ConfigError)
  })

  it('is closed once or twice, before or after it was used, and by await using', async () => {
    const store = new RedisStore(NOWHERE, { onError: 'closed', onEvent: () => {} })
    await store.close()
    await Promise.all([store.close(), store[Symbol.asyncDispose]()])
    const { reason } = await atOnce(() => new Limiter({ store }).decide(new Rule('login', '5/1m').key('ann')))
    assert.equal(reason, 'unavailable')
  })

  it('is not the store of another copy of the package', () => {
    const require = createRequire(import.meta.url)
    for (const path of Object.keys(require.cache)) if (path.includes('bindings-node')) delete require.cache[path]
    const fresh = require('doorkeep')
    assert.throws(
      () => new Limiter({ store: new fresh.RedisStore(NOWHERE) }),
      refused('store must be a RedisStore, or left out for memory'),
    )
  })
})

it('every ...Sync method refuses a store, and sends it nothing', () => {
  const store = new RedisStore(NOWHERE, { onEvent: assert.fail })
  const key = new Rule('login', '5/1m').key('ann')
  const limiter = new Limiter({ store })
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', name: 'strikes', store })
  const bucket = new TokenBucket({ name: 'bucket', store })
  const window = new FixedWindow({ limit: 5, window: '1m', name: 'window', store })
  for (const call of [
    () => limiter.decideSync(key),
    () => limiter.peekSync(key),
    () => limiter.attemptSync(key),
    () => limiter.resetSync(key),
    () => limiter.runSync(key, () => {}),
    () => strikes.attemptSync('ann'),
    () => strikes.decideSync('ann'),
    () => strikes.reserveSync('ann'),
    () => strikes.lockedSync('ann'),
    () => strikes.retryAfterMsSync('ann'),
    () => strikes.resetSync('ann'),
    () => strikes.refundSync('ann'),
    () => bucket.allowSync('ann'),
    () => bucket.allowNSync('ann', 2),
    () => bucket.resetSync('ann'),
    () => window.consumeSync('ann'),
    () => window.resetSync('ann'),
  ]) {
    assert.throws(call, refused('a limiter with a store has no ...Sync methods, await the others'), String(call))
  }
  for (const one of [limiter, strikes, bucket, window]) {
    assert.equal(one.size, 0)
    assert.deepEqual(one.stats().storeFailed, {})
  }
})

describe('over a server', () => {
  let server
  before(async () => {
    server = await launch('Redis')
  })
  after(() => server.stop())

  const open = (test, options) =>
    openStore(test, server.url, { prefix: test.name.replace(/\W+/g, '-').slice(0, 64), ...options })

  it('of 500 reserves of one key by two stores, 4 are allowed, 1 is the last and 495 are denied', async (test) => {
    const limiters = [1, 2].map(() => {
      const { store } = open(test, { timeout: '2s' })
      return new AttemptLimiter({ threshold: 5, lockoutWindow: '1h', name: 'strikes', store })
    })
    const reserved = await many(500, (n) => limiters[n % 2].reserve('ann'))
    const count = (outcome) => reserved.filter((one) => one.outcome === outcome).length
    assert.deepEqual([Outcome.Allowed, Outcome.AllowedLastAttempt, Outcome.Denied].map(count), [4, 1, 495])
    assert.ok(reserved.every(({ decision, reservation }) => reservation.decision === decision && !decision.degraded))
    // The reservation that locked lifts its lockout, once, whichever limiter cancels it.
    const last = reserved.find(({ outcome }) => outcome === Outcome.AllowedLastAttempt)
    assert.equal(await limiters[0].cancel(last.reservation), 'lifted')
    assert.equal(await limiters[1].cancel(last.reservation), 'nothing')
    assert.equal(await limiters[1].locked('ann'), false)
  })

  it('an attempt is extended, settled and cancelled, and run settles as in memory', async (test) => {
    const limiter = new Limiter({ store: open(test).store })
    const ip = new Rule('ip', '10/1h')
    const account = new StrikeRule('account', { threshold: 3, lockoutWindow: '1h' })
    const left = async (key) => (await limiter.peek(key)).remaining

    const attempt = await limiter.attempt(ip.key('a'))
    assert.deepEqual([attempt.allowed, attempt.decision.remaining], [true, 9])
    assert.equal((await attempt.extend([ip.key('a'), account.key('ann')])).remaining, 2)
    assert.deepEqual([await left(ip.key('a')), await left(account.key('ann'))], [9, 2])
    await assert.rejects(attempt.success({ forgive: [account], giveBack: [account] }), { code: 'DOORKEEP_CONFIG' })
    assert.equal(await attempt.success({ forgive: [account, 'other'], giveBack: ['ip'] }), true)
    assert.equal(await attempt.cancel(), false)
    assert.deepEqual([await left(ip.key('a')), await left(account.key('ann'))], [10, 3])

    const failed = new RangeError('wrong')
    const wrong = () => Promise.reject(failed)
    await assert.rejects(limiter.run(account.key('bob'), wrong, { giveBackOn: [RangeError] }), failed)
    assert.equal(await left(account.key('bob')), 3)
    await assert.rejects(limiter.run(account.key('bob'), wrong), failed)
    assert.equal(await left(account.key('bob')), 2)
    const mistaken = await limiter.attempt(account.key('eve'))
    assert.deepEqual(
      [await mistaken.failure(), await mistaken.cancel(), await left(account.key('eve'))],
      [true, false, 2],
    )
    assert.equal(await limiter.allow(account.key('eve'), { cost: 0 }), true)
    assert.equal((await limiter.run(account.key('bob'), () => 5)).value, 5)
    assert.deepEqual((await limiter.run(account.key('bob'), () => 5)).decision.engaged, ['account'])
    const denied = await limiter.run(account.key('bob'), assert.fail)
    assert.deepEqual([denied.decision.reason, denied.decision.rule, denied.value], ['locked', 'account', undefined])
    assert.equal(await limiter.reset([ip.key('a'), account.key('bob')]), true)
    assert.equal(await left(account.key('bob')), 3)
    assert.equal(limiter.size, 0)
    assert.deepEqual(limiter.stats().denied, { account: { locked: 1 } })
  })

  it('the names in the server are prefix, rule, digest and policy, each with a time to live', async (test) => {
    const { store } = openStore(test, server.url, { prefix: 'names' })
    const rule = new Rule('login-ip', '20/1m,200/1h')
    await new Limiter({ store }).decide(rule.ipKey('203.0.113.9'))
    await new TokenBucket({ rate: 5, window: '1m', name: 'bucket', store }).allow('203.0.113.9')
    await new FixedWindow({ limit: 5, window: '1m', name: 'window', store }).consume('203.0.113.9')
    await new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', name: 'strikes', store }).attempt('203.0.113.9')
    const names = (await server.keys()).filter((name) => name.startsWith('names:')).sort()
    const digest = rule.ipKey('203.0.113.9').digest
    assert.deepEqual(names, [
      `names:{bucket:${digest}}:5/1m`,
      `names:{login-ip:${digest}}:20/1m,200/1h`,
      `names:{strikes:${digest}}:s5/15m`,
      `names:{window:${digest}}:w5/1m`,
    ])
    for (const name of names) assert.match(await server.ask('PTTL', name), /^:[1-9]/)
  })

  it('two replicas whose clocks are apart admit 10 of 1000 on 10/60s', async (test) => {
    const rule = new Rule('login', '10/60s')
    const limiters = [1, 2].map(() => new Limiter({ store: open(test, { timeout: '2s' }).store }))
    const answers = await many(1000, async (n) => {
      // What a replica whose clock is five seconds ahead would have.
      const ahead = test.mock.method(Date, 'now', () => 5000 * (n % 2) + performance.timeOrigin + performance.now())
      const answer = limiters[n % 2].decide(rule.key('ann'))
      ahead.mock.restore()
      return answer
    })
    assert.equal(answers.filter(({ allowed }) => allowed).length, 10)
  })

  it('uses an explicit now, the clock of a limiter, or that of this process', async (test) => {
    const clock = new ManualClock(1_000_000)
    const rule = new Rule('login', '1/1m')
    const limiter = new Limiter({ store: open(test).store, clock })
    const allowed = async (options) => (await limiter.decide(rule.key('ann'), options)).allowed
    assert.deepEqual([await allowed(), await allowed(), await allowed({ now: 1_060_000 })], [true, false, true])
    clock.advance('2m')
    assert.equal(await allowed(), true)
    const ours = new Limiter({ store: open(test, { clock: 'client' }).store })
    assert.deepEqual(
      [await ours.decide(rule.key('bob')), await ours.decide(rule.key('bob'))].map((one) => one.allowed),
      [true, false],
    )
  })

  it('an invalid call is rejected, never thrown, and counts nothing', async (test) => {
    const { store } = open(test)
    const limiter = new Limiter({ store })
    const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m', name: 'strikes', store })
    const key = new Rule('login', '5/1m').key('ann')
    for (const [call, kind] of [
      [() => limiter.decide([]), ConfigError],
      [() => limiter.decide('ann'), ConfigError],
      [() => limiter.decide(key, { cost: 1.5 }), ConfigError],
      [() => limiter.decide(key, { now: -1 }), ConfigError],
      [() => limiter.decide(key, { x: 1 }), ConfigError],
      [() => limiter.attempt(Array(17).fill(key)), ConfigError],
      [() => strikes.attempt(''), InvalidKeyError],
      [() => strikes.reserve(5), InvalidKeyError],
      [() => strikes.reset(''), InvalidKeyError],
      [() => strikes.cancel({}), ConfigError],
    ]) {
      const answer = call()
      assert.ok(answer instanceof Promise)
      await assert.rejects(answer, kind, String(call))
    }
    assert.equal((await limiter.peek(key)).remaining, 5)
  })

  it('a reservation of another store or of memory cancels nothing', async (test) => {
    const options = { threshold: 1, lockoutWindow: '1h', name: 'strikes' }
    const [here, there] = [new AttemptLimiter(options), new AttemptLimiter({ ...options, store: open(test).store })]
    const [mine, theirs] = [await here.reserve('ann'), await there.reserve('ann')]
    assert.deepEqual(
      [await here.cancel(theirs.reservation), await there.cancel(mine.reservation)],
      ['nothing', 'nothing'],
    )
    assert.deepEqual([await here.locked('ann'), await there.locked('ann')], [true, true])
  })

  it('a closed bucket admits nothing, and its store stays open', async (test) => {
    const { store } = open(test)
    const bucket = new TokenBucket({ rate: 5, name: 'bucket', store })
    assert.deepEqual(
      [await bucket.allow('ann'), await bucket.allowN('ann', 5), await bucket.allowN('ann', 4)],
      [true, false, true],
    )
    await bucket.close()
    assert.equal(await bucket.allow('bob'), false)
    assert.equal(await new TokenBucket({ rate: 5, name: 'bucket', store }).allow('bob'), true)
  })

  it('a limiter and its store can be configured with plain data', async () => {
    const limiter = Limiter.fromConfig({
      redis: server.url,
      prefix: 'configured',
      timeout: '200ms',
      onError: 'closed',
      capacity: 100,
      rules: { login: '2/1h' },
    })
    assert.ok(limiter.store instanceof RedisStore)
    assert.equal((await limiter.decide(limiter.rules.login.key('ann'))).remaining, 1)
    assert.ok((await server.keys()).some((name) => name.startsWith('configured:{login:')))
    await limiter.store.close()
    assert.equal((await limiter.decide(limiter.rules.login.key('ann'))).reason, 'unavailable')
    assert.equal(new Limiter().store, undefined)
    for (const config of [
      { redis: 'x' },
      { redis: 5 },
      { redis: server.url, prefix: ' ' },
      { redis: server.url, timeout: 0 },
    ]) {
      assert.throws(() => Limiter.fromConfig(config), ConfigError)
    }
  })

  it('an answer keeps the async context of its call', async (test) => {
    const limiter = new Limiter({ store: open(test).store })
    const context = new AsyncLocalStorage()
    const seen = await many(20, (n) =>
      context.run(n, async () => {
        await limiter.decide(new Rule('login', '100/1h').key('ann'))
        return context.getStore()
      }),
    )
    assert.deepEqual(
      seen,
      Array.from({ length: 20 }, (_, n) => n),
    )
  })

  it('a value that is not ours counts as spent for one window, and is reported without the key', async (test) => {
    const { store, events } = openStore(test, server.url, { prefix: 'corrupt', onError: 'closed' })
    const rule = new Rule('login', '5/1h')
    const key = rule.key('ann')
    await server.ask('SET', `corrupt:{login:${key.digest}}:5/1h`, 'zzz')
    const decision = await new Limiter({ store }).decide(key)
    assert.deepEqual([decision.reason, decision.degraded], ['limited', false])
    assert.ok(decision.retryAfterMs <= 3_600_000)
    assert.deepEqual(events, [{ type: 'corrupt_state', rule: 'login' }])
  })

  it('a server that evicts is reported once', async (test) => {
    const own = await launch('Valkey', '--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru')
    test.after(() => own.stop())
    const { store, events } = openStore(test, own.url)
    const limiter = new Limiter({ store })
    const key = new Rule('login', '500/1h').key('ann')
    await until(async () => {
      await limiter.decide(key)
      return events.length > 0
    })
    await many(50, () => limiter.decide(key))
    assert.deepEqual(events, [{ type: 'store_evicts', policy: 'allkeys-lru' }])
  })
})

describe('the events of a store', () => {
  it('contain no password, and a listener that throws does not affect the answer', async () => {
    const { status, stdout, stderr } = await runScript(
      `const { Limiter, RedisStore, Rule } = require('doorkeep')
      process.on('uncaughtException', (error) => console.log('uncaught', error.message))
      const onEvent = (event) => { console.log(JSON.stringify(event)); throw new Error('mine') }
      const store = new RedisStore(process.argv[1], { onEvent })
      new Limiter({ store }).decide(new Rule('login', '5/1m').key('ann')).then(({ degraded }) => console.log(degraded))`,
      `redis://user:sesame@127.0.0.1:${await freePort()}/0`,
    )
    assert.deepEqual([status, stderr], [0, ''])
    assert.match(stdout, /^\{"type":"store_down","place":"127\.0\.0\.1:\d+","why":"[^"]+"\}\n/)
    assert.deepEqual(stdout.split('\n').slice(1).sort(), ['', 'true', 'uncaught mine'])
    assert.doesNotMatch(stdout, /sesame|ann/)
  })

  it('are reported again after the server came back, once each time', async (test) => {
    const server = await launch('Redis')
    test.after(() => server.stop())
    const { store, seen } = openStore(test, server.url)
    const limiter = new Limiter({ store })
    const key = new Rule('login', '5/1h').key('ann')
    for (let n = 0; n < 2; n += 1) {
      await server.stop()
      await many(20, () => inTime(() => limiter.peek(key)))
      await server.start()
      await until(async () => !(await limiter.peek(key)).degraded)
    }
    assert.deepEqual(seen(), ['store_down', 'store_up', 'store_down', 'store_up'])
  })
})
