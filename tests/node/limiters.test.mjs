/** What the TypeScript half adds to the decisions of the core: runs, clocks, configuration, settling. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  AttemptDenied,
  AttemptLimiter,
  ConfigError,
  DoorkeepError,
  FixedWindow,
  InvalidKeyError,
  Limiter,
  ManualClock,
  network,
  Outcome,
  Rate,
  RateLimitExceeded,
  Rates,
  Rule,
  StrikeRule,
  TokenBucket,
} from 'doorkeep'

const account = new StrikeRule('account', { threshold: 3, lockoutWindow: '1m' })
const key = account.key('ann')

describe('a run', () => {
  const remaining = (limiter) => limiter.peekSync(key, { now: 0 }).remaining
  const boom = () => {
    throw new RangeError('boom')
  }

  it('returns the value of its function and stays counted unless it is settled', async () => {
    const limiter = new Limiter()
    assert.deepEqual((await limiter.run(key, async () => 'yes', { now: 0 })).value, 'yes')
    assert.equal(remaining(limiter), 2)
    await limiter.run(key, (attempt) => attempt.success({ forgive: [account], now: 0 }), { now: 0 })
    assert.equal(remaining(limiter), 3)
  })

  it('does not call its function when it is denied', async () => {
    const limiter = new Limiter()
    for (let n = 0; n < 3; n += 1) await limiter.run(key, () => n, { now: 0 })
    const { decision, value } = await limiter.run(key, () => assert.fail('called'), { now: 0 })
    assert.deepEqual([decision.reason, decision.rule, value], ['locked', 'account', undefined])
  })

  it('stays counted when its function throws, and the error passes through', async () => {
    const limiter = new Limiter()
    await assert.rejects(limiter.run(key, boom, { now: 0 }), RangeError)
    await assert.rejects(
      limiter.run(key, async () => boom(), { now: 0 }),
      RangeError,
    )
    assert.throws(() => limiter.runSync(key, boom, { now: 0 }), RangeError)
    assert.equal(remaining(limiter), 0)
  })

  it('checks no more passwords than its rule admits when a wrong one throws', async () => {
    const limiter = new Limiter()
    let looked = 0
    class MismatchError extends Error {}
    // Like argon2 and others in Python, and many wrappers in Node.
    const verify = async () => {
      looked += 1
      throw new MismatchError('the password does not match')
    }
    for (let n = 0; n < 100; n += 1)
      await limiter.run(key, verify).catch((error) => assert.ok(error instanceof MismatchError))
    assert.equal(looked, 3)
  })

  it('gives back on the errors that giveBackOn names, and on their subclasses', async () => {
    const limiter = new Limiter()
    for (const giveBackOn of [RangeError, [RangeError], [TypeError, Error]]) {
      await assert.rejects(limiter.run(key, boom, { now: 0, giveBackOn }), RangeError)
      assert.throws(() => limiter.runSync(key, boom, { now: 0, giveBackOn }), RangeError)
    }
    assert.equal(remaining(limiter), 3)
    for (const giveBackOn of [undefined, null, [], TypeError, [TypeError, SyntaxError]]) {
      limiter.resetSync(key)
      await assert.rejects(limiter.run(key, boom, { now: 0, giveBackOn }), RangeError)
      assert.throws(() => limiter.runSync(key, boom, { now: 0, giveBackOn }), RangeError)
      assert.equal(remaining(limiter), 1)
    }
  })

  it('keeps what was counted on an address alone, whatever is named', async () => {
    const limiter = new Limiter()
    const ip = new Rule('ip', '5/1m', { by: ['address'] })
    const both = [ip.ipKey('203.0.113.9'), key]
    await assert.rejects(limiter.run(both, boom, { now: 0, giveBackOn: Error }), RangeError)
    assert.throws(() => limiter.runSync(both, boom, { now: 0, giveBackOn: Error }), RangeError)
    assert.deepEqual([remaining(limiter), limiter.peekSync(both[0], { now: 0 }).remaining], [3, 3])
  })

  it('gives nothing back when its client hangs up, or on an error of doorkeep, whatever is named', async () => {
    for (const error of [
      AbortSignal.abort().reason,
      Object.assign(new Error('aborted'), { name: 'AbortError' }),
      // What an object of another realm looks like.
      { name: 'AbortError', message: 'aborted' },
      new InvalidKeyError('empty'),
      new ConfigError('misspelt'),
      new RateLimitExceeded(),
      new AttemptDenied(new Limiter().decideSync(key)),
      new AggregateError([new InvalidKeyError('empty')]),
    ]) {
      const limiter = new Limiter()
      const fail = () => {
        throw error
      }
      const named = { now: 0, giveBackOn: [Object, Error, DoorkeepError, InvalidKeyError, AggregateError] }
      await assert.rejects(limiter.run(key, fail, named))
      assert.throws(() => limiter.runSync(key, fail, named))
      assert.equal(remaining(limiter), 1, String(error))
    }
  })

  it('gives back on several errors at once only if each of them is named', async () => {
    const [lost, wrong] = [new TypeError('lost'), new RangeError('wrong')]
    const circular = new AggregateError([lost])
    circular.errors.push(circular)
    const hollow = new AggregateError([])
    hollow.errors.push(hollow)
    for (const [error, giveBackOn, left] of [
      [new AggregateError([lost, wrong]), [TypeError], 2],
      [new AggregateError([lost, wrong]), [AggregateError, TypeError], 2],
      [new AggregateError([lost, new AggregateError([lost, wrong])]), [TypeError], 2],
      [new AggregateError([lost, AbortSignal.abort().reason]), [Error], 2],
      [new AggregateError([]), [TypeError], 2],
      [circular, [RangeError], 2],
      [hollow, [Error], 2],
      [Object.assign(new AggregateError([]), { errors: undefined }), [TypeError], 2],
      [new AggregateError([lost, wrong]), [TypeError, RangeError], 3],
      [new AggregateError([lost, new AggregateError([wrong])]), [TypeError, RangeError], 3],
      [new AggregateError([lost, wrong]), [Error], 3],
      [circular, [TypeError], 3],
      [new AggregateError([]), [AggregateError], 3],
    ]) {
      const limiter = new Limiter()
      const fail = () => {
        throw error
      }
      await assert.rejects(limiter.run(key, fail, { now: 0, giveBackOn }), (thrown) => thrown === error)
      assert.equal(remaining(limiter), left)
    }
  })

  it('refuses what is not a class in giveBackOn before it counts', async () => {
    const limiter = new Limiter()
    const refused = { code: 'DOORKEEP_CONFIG', message: 'giveBackOn must list classes of errors' }
    const withoutPrototype = Object.assign(() => {}, { prototype: null })
    for (const one of [
      'RangeError',
      5,
      {},
      () => {},
      async () => {},
      withoutPrototype,
      new Error('x'),
      new Set([Error]),
    ]) {
      for (const giveBackOn of [one, [one], [RangeError, one]]) {
        await assert.rejects(limiter.run(key, boom, { giveBackOn }), refused)
        assert.throws(() => limiter.runSync(key, boom, { giveBackOn }), refused)
      }
    }
    assert.equal(limiter.size, 0)
  })

  it('refuses what is not a function before it counts', async () => {
    const limiter = new Limiter()
    const refused = { code: 'DOORKEEP_CONFIG', message: 'fn must be a function' }
    for (const fn of [undefined, null, {}, 'x', Promise.resolve()]) {
      await assert.rejects(limiter.run(key, fn), refused)
      assert.throws(() => limiter.runSync(key, fn), refused)
    }
    assert.equal(limiter.size, 0)
  })

  it('leaves an attempt that its function settled before it threw', async () => {
    const limiter = new Limiter()
    const settled = async (attempt) => {
      await attempt.success({ now: 0 })
      boom()
    }
    await assert.rejects(limiter.run(key, settled, { now: 0, giveBackOn: Error }), RangeError)
    assert.equal(remaining(limiter), 2)
    const wrong = async (attempt) => {
      assert.equal(await attempt.failure(), true)
      boom()
    }
    await assert.rejects(limiter.run(key, wrong, { now: 0, giveBackOn: Error }), RangeError)
    assert.equal(remaining(limiter), 1)
  })
})

describe('allow', () => {
  it('answers true or false, so that a condition denies', async () => {
    const limiter = new Limiter()
    const admitted = []
    for (let n = 0; n < 5; n += 1) if (await limiter.allow(key, { now: 0 })) admitted.push(n)
    assert.deepEqual(admitted, [0, 1, 2])
    limiter.resetSync(key)
    for (let n = 0; n < 5; n += 1) if (limiter.allowSync(key, { now: 0 })) admitted.push(n)
    assert.deepEqual(admitted, [0, 1, 2, 0, 1, 2])
    assert.deepEqual([limiter.allowSync(key, { now: 0 }), await limiter.allow(key, { now: 0 })], [false, false])
  })

  it('counts as decide does, by cost and over several keys', () => {
    const [one, other] = [new Limiter(), new Limiter()]
    const wide = new Rule('wide', '5/1m').key('ann')
    for (const cost of [2, 0, 2, 2, 1]) {
      const { allowed } = one.decideSync([key, wide], { cost, now: 0 })
      assert.equal(other.allowSync([key, wide], { cost, now: 0 }), allowed)
    }
    assert.deepEqual(other.stats(), one.stats())
  })
})

describe('an attempt', () => {
  it('is settled once', async () => {
    const attempt = await new Limiter().attempt(key)
    assert.deepEqual(
      [attempt.allowed, await attempt.success(), await attempt.cancel(), attempt.successSync()],
      [true, true, false, false],
    )
  })

  it('that failed stays counted, whatever is called afterwards', async () => {
    const limiter = new Limiter()
    const attempt = await limiter.attempt(key)
    const settled = [
      await attempt.failure(),
      attempt.failureSync(),
      await attempt.cancel(),
      attempt.successSync({ forgive: [account] }),
    ]
    assert.deepEqual(settled, [true, false, false, false])
    assert.equal(limiter.peekSync(key).remaining, 2)
    limiter.attemptSync(key)
    limiter.attemptSync(key)
    assert.equal(limiter.attemptSync(key).failureSync(), false)
  })

  it('is settled as a failure immediately', () => {
    const limiter = new Limiter()
    const attempt = limiter.attemptSync(key)
    attempt.failure()
    assert.equal(attempt.cancelSync(), false)
  })

  it('skips rules that it has no key of, so one success works for clients without an address', async () => {
    const ip = new Rule('ip', '5/1m', { by: ['address'] })
    const pair = new StrikeRule('pair', { threshold: 5, lockoutWindow: '1m', by: ['account', 'address'] })
    const limiter = new Limiter()
    const attempt = await limiter.attempt(key)
    assert.equal(await attempt.success({ forgive: [account, pair], giveBack: [ip, 'other'] }), true)
    assert.equal(limiter.size, 0)
  })

  it('refuses what is not a rule, since nothing would be forgiven', () => {
    const attempt = new Limiter().attemptSync(key)
    const refused = { code: 'DOORKEEP_CONFIG' }
    for (const list of ['forgive', 'giveBack', 'forgiveAddress']) {
      for (const odd of [5, new Set([account]), { name: 'account' }, [key], [5], [[account]], [undefined], key, {}]) {
        assert.throws(() => attempt.successSync({ [list]: odd }), {
          ...refused,
          message: `${list} must list rules or their names`,
        })
      }
    }
    assert.equal(attempt.successSync({ forgive: account }), true)
  })

  it('refuses to forgive an address unless it is asked for by name', async () => {
    const ip = new Rule('ip', '5/1m')
    const limiter = new Limiter()
    const attempt = await limiter.attempt([ip.ipKey('203.0.113.9'), key])
    await assert.rejects(attempt.success({ forgive: [ip] }), { code: 'DOORKEEP_CONFIG' })
    assert.equal(await attempt.success({ forgive: ['account'], forgiveAddress: [ip] }), true)
    assert.equal(limiter.size, 0)
  })

  it('is decided immediately: the promise resolves with what is already counted', () => {
    const limiter = new Limiter()
    limiter.attempt(key)
    const strikes = new AttemptLimiter({ threshold: 3, lockoutWindow: '1m' })
    strikes.attempt('ann')
    assert.deepEqual([limiter.size, strikes.size], [1, 1])
  })

  it('of a reservation can be cancelled repeatedly, by its own limiter only', async () => {
    const strikes = new AttemptLimiter({ threshold: 1, lockoutWindow: '1m', name: 'logins' })
    const { outcome, reservation, decision } = await strikes.reserve('ann')
    assert.deepEqual(
      [outcome, decision.engaged, reservation.decision],
      [Outcome.AllowedLastAttempt, ['logins'], decision],
    )
    assert.equal(await strikes.cancel(reservation), 'lifted')
    assert.equal(strikes.cancelSync(reservation), 'nothing')
    assert.throws(() => strikes.cancelSync({ decision }), { code: 'DOORKEEP_CONFIG' })
  })
})

describe('a clock', () => {
  it('is read once per call, and not when a moment is given', async () => {
    let read = 0
    const clock = () => {
      read += 1
      return 1000
    }
    const limiter = new Limiter({ clock })
    const strikes = new AttemptLimiter({ threshold: 3, lockoutWindow: '1m', clock })
    const bucket = new TokenBucket({ clock })
    const window = new FixedWindow({ limit: 3, window: '1m', clock })
    const attempt = limiter.attemptSync(key)
    const calls = [
      () => limiter.decideSync(key),
      () => limiter.peekSync([key, account.key('bob')]),
      () => attempt.cancelSync(),
      () => strikes.attemptSync('a'),
      () => strikes.decideSync('a'),
      () => strikes.lockedSync('a'),
      () => bucket.allowSync('a'),
      () => bucket.allowNSync('a', 2),
      () => window.consumeSync('a'),
    ]
    for (const call of calls) {
      read = 0
      call()
      assert.equal(read, 1, String(call))
    }
    read = 0
    limiter.decideSync(key, { now: 5 })
    strikes.attemptSync('a', 5)
    assert.equal(read, 0)
  })

  it('that throws or returns no moment fails the call and counts nothing', async () => {
    let give = () => {
      throw new Error('stopped')
    }
    const strikes = new AttemptLimiter({ threshold: 3, lockoutWindow: '1m', clock: () => give() })
    assert.throws(() => strikes.attemptSync('a'), /stopped/)
    await assert.rejects(strikes.attempt('a'), /stopped/)
    for (const wrong of [Number.NaN, -1, 'x', {}]) {
      give = () => wrong
      assert.throws(() => strikes.attemptSync('a'), { code: 'DOORKEEP_CONFIG' })
    }
    assert.equal(strikes.size, 0)
  })

  it('that is manual moves only when it is moved, by exact microseconds', () => {
    const clock = new ManualClock()
    const strikes = new AttemptLimiter({ threshold: 1, lockoutWindow: '1m', clock })
    strikes.attemptSync('a')
    clock.advance('59s')
    clock.advance(999.999)
    assert.equal(clock(), 59_999.999)
    assert.equal(strikes.retryAfterMsSync('a'), 0.001)
    clock.advance(0.001)
    assert.equal(strikes.lockedSync('a'), false)
    clock.set(0)
    assert.equal(strikes.lockedSync('a'), true)
    assert.ok(clock instanceof ManualClock && typeof clock === 'function')
    for (const wrong of [
      () => clock.advance(0),
      () => clock.advance(-1),
      () => clock.set(-1),
      () => new ManualClock('x'),
    ]) {
      assert.throws(wrong, { code: 'DOORKEEP_CONFIG' })
    }
  })

  it('that is left out is the time since the epoch and moves forward', () => {
    const limiter = new Limiter()
    const rule = new Rule('any', '1/1h')
    limiter.decideSync(rule.key('a'))
    const { retryAfterMs } = limiter.decideSync(rule.key('a'), { now: Date.now() })
    assert.ok(Math.abs(retryAfterMs - 3_600_000) < 1000)
  })
})

describe('a configuration', () => {
  it('makes a limiter and its rules from plain data', () => {
    const limiter = Limiter.fromConfig({
      capacity: 10,
      clock: () => 0,
      rules: {
        'login-ip': '20/1m,200/1h',
        account: { rates: '2/1m', by: ['account'] },
        pair: { threshold: 5, lockoutWindow: '15m', ipv6Prefix: 56 },
      },
    })
    assert.deepEqual(Object.keys(limiter.rules), ['login-ip', 'account', 'pair'])
    const { account, pair } = limiter.rules
    assert.ok(account instanceof Rule && pair instanceof StrikeRule)
    assert.deepEqual([String(account.rates), account.by, pair.threshold, pair.ipv6Prefix], ['2/1m', ['account'], 5, 56])
    assert.equal(limiter.decideSync([account.key('ann'), pair.key('ann')]).remaining, 1)
    assert.equal(limiter.rules.constructor, undefined)
    assert.deepEqual(Object.keys(new Limiter().rules), [])
  })

  it('that is invalid is refused, and the error names the part', () => {
    assert.throws(() => Limiter.fromConfig({ rules: { a: '5/month' } }), /unknown unit/)
    assert.throws(() => Limiter.fromConfig({ rules: { A: '5/1m' } }), /rule name/)
    assert.throws(() => Limiter.fromConfig({ rules: { a: { threshold: 0, lockoutWindow: '1m' } } }), /threshold/)
    assert.throws(() => Limiter.fromConfig({ rules: { a: { threshold: 5 } } }), /lockout window/)
    for (const config of [undefined, null, [], new Map(), 5, 'x', new Limiter()]) {
      const message = 'options must be a plain object'
      assert.throws(() => Limiter.fromConfig(config), { code: 'DOORKEEP_CONFIG', message })
    }
    for (const rules of [
      5,
      'x',
      null,
      [],
      ['5/1m'],
      new Map([['a', '5/1m']]),
      { a: null },
      { a: 5 },
      { a: {} },
      { a: account },
    ]) {
      assert.throws(() => Limiter.fromConfig({ rules }), { code: 'DOORKEEP_CONFIG' })
    }
  })
})

it('rates print in canonical order, know their bound, and can be iterated', () => {
  const rates = new Rates([new Rate(50, '1h'), new Rate(5, 60_000)])
  assert.equal(String(rates), '5/1m,50/1h')
  assert.equal(`${new Rates('50 per hour; 5/minute'.replace(' per ', '/'))}`, '5/1m,50/1h')
  assert.equal(rates.maxIn('24h'), 1249)
  assert.deepEqual(
    [...rates].map(({ count, periodMs }) => [count, periodMs]),
    [
      [5, 60_000],
      [50, 3_600_000],
    ],
  )
  const rule = new Rule('login-ip', rates)
  assert.deepEqual([String(rule.rates), rule.policy, rule.maxIn('24h')], ['5/1m,50/1h', '5/1m,50/1h', 1249])
  const strikes = new StrikeRule('pair', { threshold: 5, lockoutWindow: '15m' })
  assert.deepEqual([strikes.policy, strikes.lockoutWindowMs, strikes.maxIn('24h')], ['s5/15m', 900_000, 480])
})

it('network accepts its prefix as a number or an option', () => {
  assert.equal(network('2001:db8:0:1ff::1', 56), '2001:db8:0:100::/56')
  assert.equal(network('2001:db8:0:1ff::1', { ipv6Prefix: 56 }), '2001:db8:0:100::/56')
  assert.equal(network('::ffff:192.0.2.1'), '192.0.2.1')
})

it('a closed bucket admits nothing and may be reset', async () => {
  const bucket = new TokenBucket({ rate: 2 })
  await bucket.close()
  bucket.closeSync()
  assert.deepEqual([bucket.allowSync('a'), await bucket.allowN('a', 0), await bucket.reset('a')], [false, true, true])
})

it('limiters are distinguished by their names in decisions and stats', () => {
  const window = new FixedWindow({ limit: 1, window: '1m', name: 'mails' })
  window.consumeSync('a', 0)
  assert.equal(window.consumeSync('a', 0).rule, 'mails')
  assert.deepEqual(window.stats().denied, { mails: { limited: 1 } })
})

it('limiters and attempts are collected: after many of them the memory has not grown', async () => {
  const one = new Limiter()
  const round = async () => {
    for (let n = 0; n < 300_000; n += 1) {
      one.attemptSync(key)
      if (n % 10 === 0) new Limiter().attemptSync(key)
      // The engine runs finalizers between turns of the event loop.
      if (n % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return process.memoryUsage().rss
  }
  const first = await round()
  assert.ok((await round()) - first < 64 * 2 ** 20)
})
