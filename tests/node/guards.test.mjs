/** What the guards of every framework have in common, in front of real login routes, over HTTP. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import {
  AttemptDenied,
  ClientIp,
  ConfigError,
  canonicalEmail,
  InvalidKeyError,
  keysFor,
  Limiter,
  LimiterUnavailable,
  ManualClock,
  network,
  RateLimitExceeded,
  Rule,
  StrikeRule,
} from 'doorkeep'
import { parseList } from 'structured-headers'
import { frameworks } from './support/frameworks.mjs'
import { freePort, startServer } from './support/redis.mjs'
import { openStore } from './support/stores.mjs'

const ip = new Rule('login-ip', '1000/1m', { by: ['address'] })
const account = new StrikeRule('login-account-ip', {
  threshold: 5,
  lockoutWindow: '15m',
  by: ['account', 'address'],
})
const byAddress = (req) => [ip.ipKey(req.ip)]
const keys = (req) => [...byAddress(req), account.key(req.body.email, network(req.ip))]
const annsKey = account.key('ann@example.com', network('127.0.0.1'))
const PASSWORDS = { 'ann@example.com': 'right' }
const guess = { email: 'ann@example.com', password: 'wrong' }

const limiter = () => new Limiter({ clock: new ManualClock(1000) })
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function verify({ body, attempt }) {
  await pause(5)
  if (PASSWORDS[body.email] !== body.password) return 401
  await attempt.success({ forgive: [account], giveBack: [ip] })
  return 204
}

for (const { name, login, attemptOf, clientAddress } of frameworks) {
  describe(name, () => {
    it('500 parallel guesses verify 5 passwords', async (test) => {
      const { seen, post } = await login(test, { guards: [{ limiter: limiter(), keys }], handle: verify })
      const answers = await Promise.all(Array.from({ length: 500 }, () => post('/login', guess)))
      assert.equal(seen.verified, 5)
      assert.equal(answers.filter(({ status }) => status === 401).length, 5)
      assert.equal(answers.filter(({ status }) => status === 429).length, 495)
    })

    it('a denial is 429 with the wait and a body that is the same for known and unknown accounts', async (test) => {
      const { post } = await login(test, { guards: [{ limiter: limiter(), keys }], handle: verify })
      const answers = {}
      for (const email of ['ann@example.com', 'nobody@example.com']) {
        for (let n = 0; n < 5; n += 1) await post('/login', { email, password: 'wrong' })
        answers[email] = await post('/login', { email, password: 'right' })
      }
      const known = answers['ann@example.com']
      assert.equal(known.status, 429)
      assert.equal(known.headers.get('retry-after'), '900')
      assert.equal(known.headers.get('content-type'), 'application/json; charset=utf-8')
      assert.equal(known.headers.get('cache-control'), 'no-store')
      assert.equal(known.text, '{"error":"too many attempts"}')
      const unknown = answers['nobody@example.com']
      const headers = (answer) => [...answer.headers].filter(([name]) => name !== 'date')
      assert.deepEqual(headers(unknown), headers(known))
      assert.deepEqual([unknown.status, unknown.text], [known.status, known.text])
    })

    it('a denial that never ends has no Retry-After', async (test) => {
      const dear = { limiter: limiter(), keys: byAddress, cost: 1001 }
      const { post } = await login(test, { guards: [dear], handle: verify })
      const { status, headers } = await post('/login', guess)
      assert.deepEqual([status, headers.has('retry-after')], [429, false])
    })

    it('a store that is down is 503 with Retry-After: 1 when closed, and the local tables otherwise', async (test) => {
      const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
      const shut = { limiter: new Limiter({ store, onError: 'closed' }), keys }
      const closed = await login(test, { guards: [shut], handle: verify })
      const { status, headers, text } = await closed.post('/login', guess)
      assert.deepEqual([status, headers.get('retry-after'), text], [503, '1', '{"error":"temporarily unavailable"}'])
      assert.equal(closed.seen.verified, 0)

      const local = await login(test, { guards: [{ limiter: new Limiter({ store }), keys }], handle: verify })
      const statuses = []
      for (let n = 0; n < 6; n += 1) statuses.push((await local.post('/login', guess)).status)
      assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
      assert.equal(local.seen.verified, 5)
    })

    it('two services with one store verify five of fifty parallel guesses', async (test) => {
      const server = await startServer(test)
      const services = []
      for (let n = 0; n < 2; n += 1) {
        const { store } = openStore(test, server.url, { timeout: '2s', onError: 'closed' })
        services.push(await login(test, { guards: [{ limiter: new Limiter({ store }), keys }], handle: verify }))
      }
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => services[n % 2].post('/login', guess)))
      assert.equal(answers.filter(({ status }) => status === 429).length, 45)
      assert.equal(services[0].seen.verified + services[1].seen.verified, 5)
    })

    it('an invalid key is 400, whether its function is async or not', async (test) => {
      const one = limiter()
      for (const of of [keys, async (req) => keys(req)]) {
        const { seen, post } = await login(test, { guards: [{ limiter: one, keys: of }], handle: verify })
        for (const email of [undefined, '', 5, ['a'], { a: 1 }]) {
          const { status, text } = await post('/login', { email, password: 'x' })
          assert.deepEqual([status, text], [400, '{"error":"invalid key"}'])
        }
        assert.equal(seen.verified, 0)
      }
      assert.equal(one.size, 0)
    })

    it('any other error of the keys reaches the error handler, and so does a value that is not a key', async (test) => {
      for (const [of, failed] of [
        [() => assert.fail('no keys today'), 'no keys today'],
        [async () => assert.fail('no keys today'), 'no keys today'],
        [() => [], 'a call takes 1 to 16 keys, keys=0'],
        [() => '127.0.0.1', 'a key must be made by a rule: rule.key(...) or rule.ipKey(...)'],
      ]) {
        const { seen, post } = await login(test, { guards: [{ limiter: limiter(), keys: of }], handle: verify })
        const { status, text } = await post('/login', guess)
        assert.deepEqual([status, JSON.parse(text), seen.verified], [500, { failed }, 0])
      }
    })

    it('a success forgives its account and gives back its address', async (test) => {
      const one = limiter()
      const { post } = await login(test, { guards: [{ limiter: one, keys }], handle: verify })
      for (let n = 0; n < 4; n += 1) await post('/login', guess)
      assert.equal((await post('/login', { ...guess, password: 'right' })).status, 204)
      assert.equal(one.peekSync(annsKey).remaining, 5)
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 996)
    })

    it('a handler that throws leaves the attempt counted, unless it cancels', async (test) => {
      const one = limiter()
      const { post } = await login(test, {
        guards: [{ limiter: one, keys }],
        handle: async ({ body, attempt }) => {
          if (body.cancel) await attempt.cancel()
          throw new Error('the database is gone')
        },
      })
      assert.equal((await post('/login', guess)).status, 500)
      assert.equal(one.peekSync(annsKey).remaining, 4)
      assert.equal((await post('/login', { ...guess, cancel: true })).status, 500)
      assert.equal(one.peekSync(annsKey).remaining, 4)
    })

    for (const answersErrors of [false, true]) {
      const how = answersErrors ? ', with the error handler of the adapter' : ''
      it(`a password check that rejects runs for five of a hundred guesses${how}`, async (test) => {
        // Like argon2's verify in Python, and many wrappers in Node.
        class MismatchError extends Error {}
        const { seen, post } = await login(test, {
          guards: [{ limiter: limiter(), keys, giveBackOn: [RangeError] }],
          answersErrors,
          handle: async () => {
            await pause(1)
            throw new MismatchError('the password does not match')
          },
        })
        const answers = await Promise.all(Array.from({ length: 100 }, () => post('/login', guess)))
        assert.equal(seen.verified, 5)
        assert.deepEqual(answers.filter(({ status }) => status === 429).length, 95)
      })

      it(`a code is checked as often as its rule admits, even if the request crashes afterwards${how}`, async (test) => {
        const code = new StrikeRule('otp', { threshold: 5, lockoutWindow: '15m', by: ['account'] })
        // The client chooses the string that is too long for its column, and hence whether the audit row fails.
        const audit = (agent) => {
          if (agent.length > 255)
            throw Object.assign(new Error('value too long for type varchar(255)'), { status: 500 })
        }
        const { seen, post } = await login(test, {
          guards: [{ limiter: limiter(), keys: (req) => code.key(req.body.email) }],
          answersErrors,
          handle: async ({ body, headers }) => {
            const isRight = body.code === '271828'
            audit(headers['user-agent'])
            return isRight ? 204 : 401
          },
        })
        const agent = { 'user-agent': 'x'.repeat(300) }
        for (let n = 0; n < 50; n += 1) await post('/login', { email: guess.email, code: `${n}` }, agent)
        assert.equal(seen.verified, 5)
      })
    }

    it('two hundred aliases of one account get no more checks than the account itself', async (test) => {
      const byAccount = new StrikeRule('login-account', { threshold: 5, lockoutWindow: '15m', by: ['account'] })
      const one = limiter()
      const keysOf = (req, account = canonicalEmail(req.body.email)) => keysFor([byAccount], { account })
      // Like a database whose collation ignores accents.
      const stored = (email) => email.normalize('NFD').replaceAll(/\p{M}/gu, '')
      let checks = 0
      const { post } = await login(test, {
        guards: [{ limiter: one, keys: (req) => keysOf(req) }],
        handle: async (req) => {
          const name = stored(req.body.email)
          const { allowed } = await req.attempt.extend(keysOf(req, name === 'ann@example.com' ? name : undefined))
          if (allowed) checks += 1
          return 401
        },
      })
      const accents = ['\u0300', '\u0301', '\u0302', '\u0303', '\u0308', '\u030a']
      const alias = (n) =>
        `a${accents[n % 6]}n${accents[Math.floor(n / 6) % 6]}n${accents[Math.floor(n / 36)]}@example.com`
      const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => post('/login', { email: alias(n) })))
      assert.equal(checks, 5)
      // A denial by the account's own budget looks like a wrong password.
      const bytes = new Set(answers.map(({ status, text }) => `${status} ${text}`))
      assert.equal(bytes.size, 1)
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [401])
      assert.equal((await post('/login', { email: 'ann@example.com' })).status, 429)
    })

    it('a redirect after a wrong password is not a success', async (test) => {
      const one = limiter()
      const { post } = await login(test, { guards: [{ limiter: one, keys }], handle: async () => 302 })
      const statuses = []
      for (let n = 0; n < 6; n += 1) statuses.push((await post('/login', guess)).status)
      assert.deepEqual(statuses, [302, 302, 302, 302, 302, 429])
    })

    it('a client that hangs up leaves the attempt counted', async (test) => {
      const one = limiter()
      const { origin } = await login(test, { guards: [{ limiter: one, keys }], handle: () => new Promise(() => {}) })
      const hung = request(`${origin}/login`, { method: 'POST', headers: { 'content-type': 'application/json' } })
      hung.on('error', () => {})
      hung.end(JSON.stringify(guess))
      while (one.peekSync(annsKey).remaining === 5) await pause(2)
      const closed = new Promise((resolve) => hung.once('close', resolve))
      hung.destroy()
      await closed
      await pause(20)
      assert.equal(one.peekSync(annsKey).remaining, 4)
    })

    it('a second guard of the same limiter counts only the new keys, under the same attempt', async (test) => {
      const one = limiter()
      const attempts = []
      const { post } = await login(test, {
        guards: [
          { limiter: one, keys: byAddress },
          { limiter: one, keys },
        ],
        between: ({ attempt }) => attempts.push(attempt),
        handle: verify,
      })
      assert.equal((await post('/login', { ...guess, password: 'right' })).status, 204)
      assert.equal(attempts.length, 2)
      assert.ok(attempts[0] && attempts[0] === attempts[1])
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 1000)
      assert.deepEqual({ ...one.stats().allowed }, { 'login-ip': 1, 'login-account-ip': 1 })
    })

    it('a second guard that denies answers 429 and leaves the first count', async (test) => {
      const one = limiter()
      const { seen, post } = await login(test, {
        guards: [
          { limiter: one, keys: byAddress },
          { limiter: one, keys },
        ],
        handle: verify,
      })
      for (let n = 0; n < 5; n += 1) await post('/login', guess)
      assert.equal((await post('/login', guess)).status, 429)
      assert.equal(seen.verified, 5)
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 994)
    })

    it('guards of two limiters have one attempt each', async (test) => {
      const [first, second] = [limiter(), limiter()]
      const { post } = await login(test, {
        guards: [
          { limiter: first, keys: byAddress },
          { limiter: second, keys: byAddress },
        ],
        handle: async (req) => {
          assert.equal(req.attempt, attemptOf(req, second))
          await attemptOf(req, first).cancel()
          return 204
        },
      })
      assert.equal((await post('/login', guess)).status, 204)
      assert.equal(first.peekSync(ip.ipKey('127.0.0.1')).remaining, 1000)
      assert.equal(second.peekSync(ip.ipKey('127.0.0.1')).remaining, 999)
    })

    describe('with rules on addresses in front', () => {
      const few = new Rule('few-ip', '3/1m', { by: ['address'] })
      const clientIp = new ClientIp({ trustedProxies: ['127.0.0.1'] })
      const of = (address) => ({ 'x-forwarded-for': address })

      it('every request is counted, and denied as by a guard', async (test) => {
        const { post } = await login(test, { addresses: { limiter: limiter(), rules: [few] }, handle: verify })
        for (const path of ['/open', '/login', '/open']) assert.notEqual((await post(path, guess)).status, 429)
        const { status, text, headers } = await post('/open', {})
        assert.deepEqual([status, text, headers.get('retry-after')], [429, '{"error":"too many attempts"}', '20'])
      })

      it('a guard continues the same attempt: a key that was counted is not counted again', async (test) => {
        const one = limiter()
        const both = (req) => [few.ipKey(req.ip), account.key(req.body.email, network(req.ip))]
        const handle = async ({ attempt }) => {
          await attempt.success({ forgive: [account], giveBack: [few] })
          return 204
        }
        const addresses = { limiter: one, rules: [few, ip] }
        const { post } = await login(test, { addresses, guards: [{ limiter: one, keys: both }], handle })
        for (let n = 0; n < 10; n += 1) assert.equal((await post('/login', guess)).status, 204)
        assert.deepEqual({ ...one.stats().allowed }, { 'few-ip': 10, 'login-ip': 10, 'login-account-ip': 10 })
        assert.equal(one.peekSync(few.ipKey('127.0.0.1')).remaining, 3)
      })

      it('the address is that behind the trusted proxies, IPv6 by its network', async (test) => {
        const { post } = await login(test, {
          addresses: { limiter: limiter(), rules: [few], clientIp },
          handle: verify,
        })
        const statuses = async (addresses) => {
          const answers = []
          for (const address of addresses) answers.push((await post('/open', {}, of(address))).status)
          return answers
        }
        const spoofed = [1, 2, 3, 4].map((n) => `198.51.100.${n}, 203.0.113.9`)
        assert.deepEqual(await statuses(spoofed), [204, 204, 204, 429])
        const ipv6 = [1, 2, 3, 4].map((n) => `2001:db8::${n}`)
        assert.deepEqual(await statuses(ipv6), [204, 204, 204, 429])
        const malformed = ['garbage', '203.0.113.9, ::::', '', 'unknown']
        assert.deepEqual(await statuses(malformed), [204, 204, 204, 429])
        assert.deepEqual(await statuses(['203.0.113.10']), [204])
      })

      it('without trusted proxies a forged header changes nothing', async (test) => {
        const { post } = await login(test, { addresses: { limiter: limiter(), rules: [few] }, handle: verify })
        const statuses = []
        for (let n = 0; n < 4; n += 1) statuses.push((await post('/open', {}, of(`203.0.113.${n}`))).status)
        assert.deepEqual(statuses, [204, 204, 204, 429])
      })

      it('over a Unix socket they are left out, and rules on accounts still apply', async (test) => {
        const folder = await mkdtemp(join(tmpdir(), 'doorkeep-'))
        test.after(() => rm(folder, { recursive: true }))
        const socketPath = join(folder, 'socket')
        const one = limiter()
        const byAccount = new StrikeRule('login-account', { threshold: 5, lockoutWindow: '15m', by: ['account'] })
        await login(test, {
          listen: { path: socketPath },
          addresses: { limiter: one, rules: [few], clientIp },
          guards: [
            {
              limiter: one,
              keys: (req) =>
                keysFor([few, byAccount], { address: clientAddress(req, clientIp), account: req.body.email }),
            },
          ],
          handle: async () => 401,
        })
        const send = () =>
          new Promise((resolve, reject) => {
            const headers = { 'content-type': 'application/json', ...of('203.0.113.9') }
            const sent = request({ socketPath, path: '/login', method: 'POST', headers }, (response) => {
              response.resume()
              response.on('end', () => resolve(response.statusCode))
            })
            sent.on('error', reject)
            sent.end(JSON.stringify(guess))
          })
        for (let n = 0; n < 5; n += 1) assert.equal(await send(), 401)
        assert.equal(await send(), 429)
        assert.deepEqual({ ...one.stats().allowed }, { 'login-account': 5 })
      })

      it('rules that are not by the address alone are refused, and so is an unknown option', async (test) => {
        const one = limiter()
        for (const addresses of [
          { limiter: one },
          { limiter: one, rules: [] },
          { limiter: one, rules: [account] },
          { limiter: one, rules: [new Rule('by-nothing', '1/1m')] },
          { limiter: one, rules: [few, 'login-ip'] },
          { limiter: {}, rules: [few] },
          { limiter: one, rules: [few], clientIp: {} },
          { limiter: one, rules: [few], roundUp: '1m' },
          { limiter: one, rules: [few], giveBackOn: RangeError },
          { limiter: one, rules: [few], trustProxy: true },
        ]) {
          await assert.rejects(login(test, { addresses, handle: verify }), ConfigError)
        }
      })
    })

    describe('whose errors the adapter answers', () => {
      const few = new Rule('few-ip', '9/1m', { by: ['address'] })
      const left = (one) =>
        [few.ipKey('127.0.0.1'), ip.ipKey('127.0.0.1'), annsKey].map((k) => one.peekSync(k).remaining)
      class Outage extends Error {}
      class DeadlockDetected extends Outage {}
      /** A login that fails as the test specifies, behind a rule on addresses and two guards. */
      const failing = async (test, fail, { giveBackOn = Outage, addresses = true, ...options } = {}) => {
        const one = limiter()
        const served = await login(test, {
          addresses: addresses && { limiter: one, rules: [few] },
          guards: [
            { limiter: one, keys: (req) => [few.ipKey(req.ip), ...byAddress(req)], giveBackOn },
            { limiter: one, keys },
          ],
          answersErrors: true,
          handle: fail,
          ...options,
        })
        return { one, ...served }
      }
      const throwing = (error) => async () => {
        throw error
      }

      it('an error that a guard names gives back everything but counts on an address alone', async (test) => {
        for (const error of [new Outage('gone'), new DeadlockDetected('gone')]) {
          const { one, post } = await failing(test, throwing(error))
          for (const [remains, address] of [
            [8, 999],
            [7, 998],
          ]) {
            const { status, text } = await post('/login', guess)
            assert.deepEqual([status, JSON.parse(text)], [500, { failed: 'gone' }])
            assert.deepEqual(left(one), [remains, address, 5])
          }
        }
        const without = await failing(test, throwing(new Outage()), {
          addresses: false,
          giveBackOn: [TypeError, Outage],
        })
        assert.equal((await without.post('/login', guess)).status, 500)
        assert.deepEqual(left(without.one), [8, 999, 5])
      })

      it('gives back to the limiter whose guard names the error, and to no other', async (test) => {
        const [one, two] = [limiter(), limiter()]
        const { post } = await login(test, {
          guards: [
            { limiter: one, keys },
            { limiter: two, keys, giveBackOn: Outage },
          ],
          answersErrors: true,
          handle: throwing(new Outage('gone')),
        })
        assert.equal((await post('/login', guess)).status, 500)
        assert.deepEqual(
          [left(one), left(two)].map((all) => all[2]),
          [4, 5],
        )
      })

      it('an error that is not named leaves a guess, whatever its status, and so do an abort and errors of doorkeep', async (test) => {
        const admitted = new Limiter().decideSync(account.key('a'))
        const ofOurs = [
          AbortSignal.abort().reason,
          new InvalidKeyError('empty'),
          new RateLimitExceeded(),
          new AttemptDenied(admitted),
          new ConfigError('misspelt'),
          new AggregateError([new Outage('gone'), new InvalidKeyError('empty')]),
        ]
        const foreign = [
          new Error('the database is gone'),
          'not even an error',
          Object.assign(new Error('too long'), { statusCode: 413 }),
          Object.assign(new Error('elsewhere'), { status: 302 }),
          Object.assign(new Error('down'), { status: 503, statusCode: 503 }),
          new AggregateError([new Error('wrong'), new Outage('gone')]),
        ]
        for (const [errors, giveBackOn] of [
          [ofOurs, [Error, Object]],
          [foreign, [Outage]],
          [[new Outage('gone')], undefined],
        ]) {
          for (const error of errors) {
            const { one, post } = await failing(test, throwing(error), giveBackOn ? { giveBackOn } : { giveBackOn: [] })
            await post('/login', guess)
            assert.deepEqual(left(one), [8, 999, 4], String(error))
          }
        }
      })

      it('a guard that names what is not a class is refused', async (test) => {
        for (const giveBackOn of ['Outage', [() => {}], [Outage, 5], {}]) {
          await assert.rejects(failing(test, verify, { giveBackOn }), ConfigError)
        }
      })

      it('errors of doorkeep are answered as a guard answers', async (test) => {
        const slow = new Rule('slow', '1/1m').key('a')
        const other = limiter()
        other.decideSync(slow)
        const denied = other.decideSync(slow)
        const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
        const gone = await new Limiter({ store, onError: 'closed' }).decide(slow)
        for (const [error, ...expected] of [
          [new InvalidKeyError('empty'), 400, '{"error":"invalid key"}', null],
          [new RateLimitExceeded(), 429, '{"error":"too many attempts"}', null],
          [new RateLimitExceeded({ retryAfterMs: 1500 }), 429, '{"error":"too many attempts"}', '2'],
          [new AttemptDenied(denied), 429, '{"error":"too many attempts"}', '60'],
          [new LimiterUnavailable(gone), 503, '{"error":"temporarily unavailable"}', '1'],
        ]) {
          const { post } = await failing(test, throwing(error))
          const { status, text, headers } = await post('/login', guess)
          assert.deepEqual([status, text, headers.get('retry-after')], expected)
          assert.match(headers.get('content-type'), /^application\/json; charset=utf-8$/)
          assert.equal(headers.get('cache-control'), 'no-store')
        }
        const { post } = await failing(test, throwing(new ConfigError('misspelt')))
        const { status, text } = await post('/login', guess)
        assert.deepEqual([status, JSON.parse(text)], [500, { failed: 'misspelt' }])
      })

      it('a handler that fails when its client has gone leaves a guess', async (test) => {
        let failed
        const settled = new Promise((resolve) => {
          failed = resolve
        })
        const gone = await failing(test, async (_req, response) => {
          await new Promise((resolve) => response.once('close', resolve))
          setTimeout(failed, 20)
          throw new Outage('write EPIPE')
        })
        const hung = request(`${gone.origin}/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
        })
        hung.on('error', () => {})
        hung.end(JSON.stringify(guess))
        while (left(gone.one)[2] === 5) await pause(2)
        hung.destroy()
        await settled
        assert.deepEqual(left(gone.one), [8, 999, 4])
      })

      it('an error after the answer has begun gives nothing back: the answer may have revealed whether the guess was right', async (test) => {
        const begun = await failing(test, async (_req, response) => {
          response.writeHead(200)
          response.end('wrong')
          throw new Outage('the session store is gone')
        })
        assert.equal((await begun.post('/login', guess)).text, 'wrong')
        assert.deepEqual(left(begun.one), [8, 999, 4])
      })

      it('a success and a failure are final, whatever fails after them', async (test) => {
        for (const [settle, remains] of [
          [(attempt) => attempt.success({ forgive: [account] }), 5],
          [(attempt) => attempt.failure(), 4],
        ]) {
          const { one, post } = await failing(test, async ({ attempt }) => {
            assert.equal(await settle(attempt), true)
            throw new Outage('no session')
          })
          assert.equal((await post('/login', guess)).status, 500)
          assert.deepEqual(left(one), [8, 999, remains])
        }
      })

      it('a named error gives back where it was counted, and does not fail when the store is gone', async (test) => {
        const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
        for (const onError of ['local', 'open']) {
          const one = new Limiter({ store, onError })
          const { post } = await login(test, {
            addresses: { limiter: one, rules: [few] },
            guards: [{ limiter: one, keys, giveBackOn: Outage }],
            answersErrors: true,
            handle: throwing(new Outage('gone')),
          })
          const { status, text } = await post('/login', guess)
          assert.deepEqual([status, JSON.parse(text)], [500, { failed: 'gone' }])
          if (onError === 'local') assert.equal((await one.peek(annsKey)).remaining, 5)
        }
      })
    })

    describe('with options for its headers', () => {
      const three = new Rule('three', '3/1m', { by: ['account'] })
      const byAccount = (req) => three.key(req.body.email)

      it('rounds up the wait of a rule on accounts, but not that of a rule on addresses', async (test) => {
        const few = new Rule('few-ip', '3/1m', { by: ['address'] })
        for (const [of, wait] of [
          [byAccount, '60'],
          [(req) => few.ipKey(req.ip), '20'],
        ]) {
          const guards = [{ limiter: limiter(), keys: of, roundUp: '1m' }]
          const { post } = await login(test, { guards, handle: async () => 401 })
          for (let n = 0; n < 3; n += 1) assert.equal((await post('/login', guess)).status, 401)
          const { status, headers } = await post('/login', guess)
          assert.deepEqual([status, headers.get('retry-after')], [429, wait])
        }
        const guards = [{ limiter: limiter(), keys: byAccount, roundUp: '1500ms' }]
        await assert.rejects(login(test, { guards, handle: verify }), ConfigError)
      })

      it('sends the RateLimit fields only on request, and then on all answers', async (test) => {
        for (const rateLimit of [undefined, false, true]) {
          const guards = [{ limiter: limiter(), keys: byAccount, rateLimit }]
          const { post } = await login(test, { guards, handle: async () => 401 })
          for (const left of [2, 1, 0, 0]) {
            const { headers } = await post('/login', guess)
            assert.equal(headers.has('ratelimit'), rateLimit === true)
            assert.equal(headers.has('ratelimit-policy'), rateLimit === true)
            if (!rateLimit) continue
            const [[name, fields]] = parseList(headers.get('ratelimit'))
            assert.deepEqual([name, fields.get('r')], ['three', left])
            const [[policy, of]] = parseList(headers.get('ratelimit-policy'))
            assert.deepEqual([policy, of.get('q'), of.get('w')], ['three', 3, 60])
          }
        }
      })

      it('sends the RateLimit fields of all guards of a request, including one that denies', async (test) => {
        const one = limiter()
        const addresses = { limiter: one, rules: [new Rule('wide', '600/1m', { by: ['address'] })], rateLimit: true }
        const guards = [{ limiter: one, keys: byAccount, rateLimit: true }]
        const { post } = await login(test, { addresses, guards, handle: async () => 401 })
        for (const [status, ...left] of [
          [401, 599, 2],
          [401, 598, 1],
          [401, 597, 0],
          [429, 596, 0],
        ]) {
          const answer = await post('/login', guess)
          assert.equal(answer.status, status)
          const said = parseList(answer.headers.get('ratelimit')).map(([name, fields]) => [name, fields.get('r')])
          assert.deepEqual(said, [
            ['wide', left[0]],
            ['three', left[1]],
          ])
          const policies = parseList(answer.headers.get('ratelimit-policy')).map(([name]) => name)
          assert.deepEqual(policies, ['wide', 'three'])
        }
      })
    })
  })
}
