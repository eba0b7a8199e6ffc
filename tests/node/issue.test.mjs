/** Which subjects are limited when tokens are issued, and by which provider. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError, InvalidKeyError, IssueGuard, keyFromClaims, RateLimitExceeded, TokenBucket } from 'doorkeep'

const provider = (allow) => ({ allow, reset() {}, close() {} })
const bucket = () => new TokenBucket({ rate: 1, window: '1m', clock: () => 0 })

it('a provider without methods is refused when the guard is made', () => {
  for (const none of [undefined, null, 5, {}, () => true]) {
    assert.throws(() => new IssueGuard(none), { code: 'DOORKEEP_CONFIG', message: /must have the methods/ })
  }
})

describe('the key of some claims', () => {
  it('is the first of sub, user_id and the result of rateLimitKey that is not empty', () => {
    const own = { rateLimitKey: () => 'own' }
    assert.equal(keyFromClaims({ sub: 'ann', user_id: 'u1', ...own }), 'ann')
    assert.equal(keyFromClaims({ sub: '', user_id: 'u1', ...own }), 'u1')
    assert.equal(keyFromClaims({ user_id: null, ...own }), 'own')
    assert.equal(keyFromClaims({ rateLimitKey: 'no function' }), '')
  })

  it('is found in maps, in instances of classes and behind getters', () => {
    class Claims {
      #email = 'ann@example.com'
      get user_id() {
        return ''
      }
      rateLimitKey() {
        return this.#email
      }
    }
    class Derived extends Claims {}
    assert.equal(keyFromClaims(new Map([['sub', 'ann']])), 'ann')
    assert.equal(keyFromClaims(new Derived()), 'ann@example.com')
    assert.equal(keyFromClaims(Object.assign(Object.create(null), { sub: 'ann' })), 'ann')
  })

  it('is empty when the claims have no subject', () => {
    for (const nobody of [{}, [], new Map(), { rateLimitKey: () => undefined }]) {
      assert.equal(keyFromClaims(nobody), '')
    }
  })

  it('is refused for values that are not claims, such as an encoded token', () => {
    for (const none of [undefined, null, 'header.payload.signature', 7, true, 1n, Symbol('s'), () => 'ann']) {
      assert.throws(() => keyFromClaims(none), ConfigError)
      assert.throws(() => new IssueGuard(bucket()).checkSync(none), ConfigError)
    }
    new IssueGuard(bucket(), () => 'all').checkSync(undefined)
  })

  it('is the digits of a whole number, exactly', () => {
    assert.equal(keyFromClaims({ user_id: 7 }), '7')
    assert.equal(keyFromClaims({ user_id: 0 }), '0')
    assert.equal(keyFromClaims({ user_id: 2n ** 70n + 1n }), '1180591620717411303425')
  })

  it('refuses anything else, since skipping it would lift the limit', () => {
    for (const odd of [true, false, 1.5, Number.NaN, 2 ** 53, [], {}, Symbol('s'), () => 'ann']) {
      assert.throws(() => keyFromClaims({ sub: odd, user_id: 'u1' }), InvalidKeyError)
    }
    const promised = { rateLimitKey: async () => 'ann' }
    assert.throws(() => keyFromClaims(promised), /must be text or a whole number, claim=`rateLimitKey`/)
  })

  it('never comes from the prototype of all objects', () => {
    const claims = JSON.parse('{"__proto__": {"sub": "mallory"}, "constructor": {"sub": "mallory"}}')
    assert.equal(keyFromClaims(claims), '')
    Object.defineProperty(Object.prototype, 'sub', { value: 'everybody', configurable: true })
    try {
      assert.equal(keyFromClaims({}), '')
      assert.equal(keyFromClaims({ user_id: 'u1' }), 'u1')
      assert.equal(keyFromClaims({ sub: 'ann' }), 'ann')
    } finally {
      delete Object.prototype.sub
    }
  })
})

describe('issuing', () => {
  it('is refused when the subject has used up its rate, and only then', async () => {
    const guard = new IssueGuard(bucket())
    await guard.check({ sub: 'ann' })
    await assert.rejects(guard.check({ sub: 'ann' }), RateLimitExceeded)
    await guard.check({ sub: 'bob' })
  })

  it('is refused with the wait of the bucket, and its header fields', async () => {
    const guard = new IssueGuard(bucket())
    await guard.check({ sub: 'ann' })
    const expected = { retryAfterMs: 60_000, headers: { 'Retry-After': '60', 'Cache-Control': 'no-store' } }
    await assert.rejects(guard.check({ sub: 'ann' }), expected)
    assert.throws(() => guard.checkSync({ sub: 'ann' }), expected)
  })

  it('is refused without Retry-After by a provider that knows no wait', async () => {
    const expected = { retryAfterMs: null, headers: { 'Cache-Control': 'no-store' } }
    for (const wait of [{}, { retryAfterMs: async () => null }, { retryAfterMs() {} }]) {
      await assert.rejects(new IssueGuard({ ...provider(() => false), ...wait }).check({ sub: 'ann' }), expected)
    }
  })

  it('fails for a wait that is not a number from 0, or that is a promise in checkSync', async () => {
    for (const odd of ['60', -1, Number.NaN, {}, true, 60n]) {
      const guard = new IssueGuard({ ...provider(() => false), retryAfterMs: async () => odd })
      const expected = {
        code: 'DOORKEEP_CONFIG',
        message: /^retryAfterMs of a provider must be a number from 0 or null/,
      }
      await assert.rejects(guard.check({ sub: 'ann' }), expected)
      assert.throws(() => guard.checkSync({ sub: 'ann' }), expected)
    }
  })

  it('counts odd subjects separately', () => {
    const guard = new IssueGuard(bucket())
    const subjects = ['__proto__', 'constructor', '\0', '\ud800', '\ud801', ' ', 'x'.repeat(100_000)]
    for (const sub of subjects) guard.checkSync({ sub })
    for (const sub of subjects) assert.throws(() => guard.checkSync({ sub }), RateLimitExceeded)
  })

  it('is not limited for claims without a subject', async () => {
    const guard = new IssueGuard(provider(() => assert.fail('asked')))
    for (let i = 0; i < 3; i += 1) await guard.check({ aud: 'shop' })
    guard.checkSync({})
  })

  it('accepts a key function of the application, and any provider', async () => {
    const asked = []
    const memory = provider((key) => asked.push(key) < 2)
    const guard = new IssueGuard(memory, { key: (claims) => claims.tenant })
    await guard.check({ sub: 'ann', tenant: 'acme' })
    assert.throws(() => guard.checkSync({ tenant: 9 }), RateLimitExceeded)
    await guard.check({ sub: 'ann' })
    assert.deepEqual(asked, ['acme', '9'])
    await assert.rejects(guard.check({ tenant: true }), InvalidKeyError)
  })

  it('is refused by a bucket that is closed', async () => {
    const closed = new TokenBucket()
    await closed.close()
    await assert.rejects(new IssueGuard(closed).check({ sub: 'ann' }), RateLimitExceeded)
  })

  it('passes on errors of the provider', async () => {
    const down = new Error('down')
    const throwing = new IssueGuard(
      provider(() => {
        throw down
      }),
    )
    await assert.rejects(throwing.check({ sub: 'ann' }), down)
    assert.throws(() => throwing.checkSync({ sub: 'ann' }), down)
    await assert.rejects(new IssueGuard(provider(() => Promise.reject(down))).check({ sub: 'ann' }), down)
  })

  it('is refused when the provider answers neither true nor false', async () => {
    for (const odd of [1, 0, 'yes', undefined, null, {}, () => true]) {
      await assert.rejects(new IssueGuard(provider(() => odd)).check({ sub: 'ann' }), ConfigError)
    }
    const later = provider(() => Promise.resolve(true))
    await new IssueGuard(later).check({ sub: 'ann' })
    assert.throws(() => new IssueGuard(later).checkSync({ sub: 'ann' }), /must answer true or false, type=`object`/)
  })

  it('refuses unknown options, and names no subject in its errors', () => {
    assert.throws(() => new IssueGuard(bucket(), { keys: () => 'ann' }), /unknown option, option=`keys`/)
    const guard = new IssueGuard(bucket())
    guard.checkSync({ sub: 'ann' })
    assert.throws(() => guard.checkSync({ sub: 'ann' }), {
      code: 'DOORKEEP_RATE_LIMIT_EXCEEDED',
      message: 'rate limit exceeded',
    })
  })

  it('a hundred times in parallel passes as often as the rate admits', async () => {
    const guard = new IssueGuard(new TokenBucket({ rate: 5, window: '1m', clock: () => 0 }))
    const all = await Promise.allSettled(Array.from({ length: 100 }, () => guard.check({ sub: 'ann' })))
    assert.equal(all.filter(({ status }) => status === 'fulfilled').length, 5)
  })
})
