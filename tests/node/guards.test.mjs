/** What the guards of every framework do alike, in front of real login routes, over HTTP. */
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

for (const { name, login, attemptOf, clientAddress, takesBackCrashes = false } of frameworks) {
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

    it('a denial that never ends carries no Retry-After', async (test) => {
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

    it('two services with one store verify five of fifty guesses at once', async (test) => {
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

    it('a key that cannot be counted is 400, whether its function is async or not', async (test) => {
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

    it('any other error of the keys goes to the error handler, and so does what is no key', async (test) => {
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

    const crash = takesBackCrashes ? 'takes the attempt back' : 'leaves the attempt counted, unless it cancels'
    it(`a handler that throws ${crash}`, async (test) => {
      const one = limiter()
      const { post } = await login(test, {
        guards: [{ limiter: one, keys }],
        handle: async ({ body, attempt }) => {
          if (body.cancel) await attempt.cancel()
          throw new Error('the database is gone')
        },
      })
      const left = takesBackCrashes ? 5 : 4
      assert.equal((await post('/login', guess)).status, 500)
      assert.equal(one.peekSync(annsKey).remaining, left)
      assert.equal((await post('/login', { ...guess, cancel: true })).status, 500)
      assert.equal(one.peekSync(annsKey).remaining, left)
    })

    it('a redirect after a wrong password is no success', async (test) => {
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

    it('guards of two limiters have an attempt each', async (test) => {
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

      it('every request is counted, and a denial is that of a guard', async (test) => {
        const { post } = await login(test, { addresses: { limiter: limiter(), rules: [few] }, handle: verify })
        for (const path of ['/open', '/login', '/open']) assert.notEqual((await post(path, guess)).status, 429)
        const { status, text, headers } = await post('/open', {})
        assert.deepEqual([status, text, headers.get('retry-after')], [429, '{"error":"too many attempts"}', '20'])
      })

      it('a guard goes on with the same attempt: what is counted already is not counted again', async (test) => {
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

      it('over a Unix socket they are left out, and rules on accounts stand', async (test) => {
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

      it('other rules than those by the address alone are refused, and so is an unknown option', async (test) => {
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
          { limiter: one, rules: [few], countOn: RangeError },
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
      class WrongPassword extends Error {}
      /** A login that fails as the test says, behind a rule on addresses and two guards. */
      const failing = async (test, fail, { addresses = true, ...options } = {}) => {
        const one = limiter()
        const served = await login(test, {
          addresses: addresses && { limiter: one, rules: [few] },
          guards: [
            { limiter: one, keys: (req) => [few.ipKey(req.ip), ...byAddress(req)], countOn: WrongPassword },
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

      it('a crash gives back what the guards counted, and never what rules on addresses counted in front', async (test) => {
        const { one, post } = await failing(test, throwing(new Error('the database is gone')))
        for (const remains of [8, 7]) {
          const { status, text } = await post('/login', guess)
          assert.deepEqual([status, JSON.parse(text)], [500, { failed: 'the database is gone' }])
          assert.deepEqual(left(one), [remains, 1000, 5])
        }
        const without = await failing(test, throwing('no error'), { addresses: false })
        assert.equal((await without.post('/login', guess)).status, 500)
        assert.deepEqual(left(without.one), [9, 1000, 5])
      })

      it('a crash gives back what each of two limiters counted, and nothing where no guard has run', async (test) => {
        const [one, two] = [limiter(), limiter()]
        const { post } = await login(test, {
          addresses: { limiter: one, rules: [few] },
          guards: [{ limiter: two, keys }],
          answersErrors: true,
          handle: throwing(new Error('gone')),
        })
        assert.equal((await post('/login', guess)).status, 500)
        assert.deepEqual([left(one)[0], two.peekSync(annsKey).remaining], [8, 5])
      })

      it('an answer below 500, one that a guard counts on, and an abort are guesses', async (test) => {
        const admitted = new Limiter().decideSync(account.key('a'))
        for (const error of [
          Object.assign(new Error('too long'), { statusCode: 413 }),
          Object.assign(new Error('elsewhere'), { status: 302 }),
          new WrongPassword(),
          AbortSignal.abort().reason,
          new InvalidKeyError('empty'),
          new RateLimitExceeded(),
          new AttemptDenied(admitted),
          new AggregateError([new Error('gone'), new WrongPassword()]),
        ]) {
          const { one, post } = await failing(test, throwing(error))
          await post('/login', guess)
          assert.deepEqual(left(one), [8, 999, 4], String(error))
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
          throw new Error('write EPIPE')
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

      it('a success stands, whatever fails after it', async (test) => {
        const { one, post } = await failing(test, async ({ attempt }) => {
          await attempt.success({ forgive: [account] })
          throw new Error('no session')
        })
        assert.equal((await post('/login', guess)).status, 500)
        assert.deepEqual(left(one), [8, 999, 5])
      })

      it('a crash behind a store that is gone gives back where it was counted, and fails no further', async (test) => {
        const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
        for (const onError of ['local', 'open']) {
          const one = new Limiter({ store, onError })
          const { post } = await login(test, {
            addresses: { limiter: one, rules: [few] },
            guards: [{ limiter: one, keys }],
            answersErrors: true,
            handle: throwing(new Error('gone')),
          })
          const { status, text } = await post('/login', guess)
          assert.deepEqual([status, JSON.parse(text)], [500, { failed: 'gone' }])
          if (onError === 'local') assert.equal((await one.peek(annsKey)).remaining, 5)
        }
      })
    })

    describe('asked for more or less in its headers', () => {
      const three = new Rule('three', '3/1m', { by: ['account'] })
      const byAccount = (req) => three.key(req.body.email)

      it('rounds the wait of a rule on accounts up, and that of a rule on addresses not', async (test) => {
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

      it('sends the RateLimit fields only when asked, on all answers then', async (test) => {
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

      it('sends the RateLimit fields of all guards of a request, of a denied one too', async (test) => {
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
