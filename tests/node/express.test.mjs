/** The guard in front of real login routes, over HTTP, under Express 4 and 5. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { ConfigError, Limiter, ManualClock, network, Rule, StrikeRule } from 'doorkeep'
import { attemptOf, guard } from 'doorkeep/express'
import express4 from 'express4'
import express5 from 'express5'
import { freePort, startServer } from './support/redis.mjs'
import { serve } from './support/server.mjs'
import { openStore } from './support/stores.mjs'

const ip = new Rule('login-ip', '1000/1m', { by: ['address'] })
const account = new StrikeRule('login-account-ip', {
  threshold: 5,
  lockoutWindow: '15m',
  by: ['account', 'address'],
})
const keys = (req) => [ip.ipKey(req.ip), account.key(req.body.email, network(req.ip))]
const PASSWORDS = { 'ann@example.com': 'right' }

for (const [version, express] of [
  ['Express 4', express4],
  ['Express 5', express5],
]) {
  /** An app whose login counts how many passwords it verified. */
  const login = (guards, handle) => {
    const app = express()
    const seen = { verified: 0 }
    app.use(express.json())
    app.post('/login', ...guards, async (req, res, next) => {
      try {
        seen.verified += 1
        await new Promise((resolve) => setTimeout(resolve, 5))
        await (handle ?? settle)(req, res)
      } catch (error) {
        next(error)
      }
    })
    // Four arguments make it an error handler.
    app.use((error, _req, res, _next) => res.status(500).json({ failed: error.message }))
    return { app, seen }
  }
  const settle = async (req, res) => {
    const good = PASSWORDS[req.body.email] === req.body.password
    if (good) await req.attempt.success({ forgive: [account], giveBack: [ip] })
    res.sendStatus(good ? 204 : 401)
  }
  const limiter = () => new Limiter({ clock: new ManualClock(1000) })
  const guess = { email: 'ann@example.com', password: 'wrong' }

  describe(version, () => {
    it('500 parallel guesses verify 5 passwords', async (test) => {
      const { app, seen } = login([guard({ limiter: limiter(), keys })])
      const { post } = await serve(test, app)
      const answers = await Promise.all(Array.from({ length: 500 }, () => post('/login', guess)))
      assert.equal(seen.verified, 5)
      assert.equal(answers.filter(({ status }) => status === 401).length, 5)
      assert.equal(answers.filter(({ status }) => status === 429).length, 495)
    })

    it('a denial is 429 with the wait and a body that is the same for known and unknown accounts', async (test) => {
      const { app } = login([guard({ limiter: limiter(), keys })])
      const { post } = await serve(test, app)
      const answers = {}
      for (const email of ['ann@example.com', 'nobody@example.com']) {
        for (let n = 0; n < 5; n += 1) await post('/login', { email, password: 'wrong' })
        answers[email] = await post('/login', { email, password: 'right' })
      }
      const known = answers['ann@example.com']
      assert.equal(known.status, 429)
      assert.equal(known.headers.get('retry-after'), '900')
      assert.equal(known.headers.get('content-type'), 'application/json; charset=utf-8')
      assert.equal(known.text, '{"error":"too many attempts"}')
      const unknown = answers['nobody@example.com']
      const headers = (answer) => [...answer.headers].filter(([name]) => name !== 'date')
      assert.deepEqual(headers(unknown), headers(known))
      assert.deepEqual([unknown.status, unknown.text], [known.status, known.text])
    })

    it('a denial that never ends carries no Retry-After', async (test) => {
      const { app } = login([guard({ limiter: limiter(), keys: (req) => ip.ipKey(req.ip), cost: 1001 })])
      const { post } = await serve(test, app)
      const { status, headers } = await post('/login', guess)
      assert.deepEqual([status, headers.has('retry-after')], [429, false])
    })

    it('a store that is down is 503 with Retry-After: 1 when closed, and the local tables otherwise', async (test) => {
      const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
      const closed = login([guard({ limiter: new Limiter({ store, onError: 'closed' }), keys })])
      const { status, headers, text } = await (await serve(test, closed.app)).post('/login', guess)
      assert.deepEqual([status, headers.get('retry-after'), text], [503, '1', '{"error":"temporarily unavailable"}'])
      assert.equal(closed.seen.verified, 0)

      const local = login([guard({ limiter: new Limiter({ store }), keys })])
      const { post } = await serve(test, local.app)
      const statuses = []
      for (let n = 0; n < 6; n += 1) statuses.push((await post('/login', guess)).status)
      assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
      assert.equal(local.seen.verified, 5)
    })

    it('two services with one store verify five of fifty guesses at once', async (test) => {
      const server = await startServer(test)
      const services = []
      for (let n = 0; n < 2; n += 1) {
        const { store } = openStore(test, server.url, { timeout: '2s', onError: 'closed' })
        const { app, seen } = login([guard({ limiter: new Limiter({ store }), keys })])
        services.push({ seen, ...(await serve(test, app)) })
      }
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => services[n % 2].post('/login', guess)))
      assert.equal(answers.filter(({ status }) => status === 429).length, 45)
      assert.equal(services[0].seen.verified + services[1].seen.verified, 5)
    })

    it('a key that cannot be counted is 400, whether its function is async or not', async (test) => {
      const one = limiter()
      for (const of of [keys, async (req) => keys(req)]) {
        const { app, seen } = login([guard({ limiter: one, keys: of })])
        const { post } = await serve(test, app)
        for (const email of [undefined, '', 5, ['a'], { a: 1 }]) {
          const { status, text } = await post('/login', { email, password: 'x' })
          assert.deepEqual([status, text], [400, '{"error":"invalid key"}'])
        }
        assert.equal(seen.verified, 0)
      }
      assert.equal(one.size, 0)
    })

    it('any other error of the keys goes to the error handler, and so does an empty list', async (test) => {
      for (const [of, failed] of [
        [() => assert.fail('no keys today'), 'no keys today'],
        [async () => assert.fail('no keys today'), 'no keys today'],
        [() => [], 'a call takes 1 to 16 keys, keys=0'],
      ]) {
        const { app, seen } = login([guard({ limiter: limiter(), keys: of })])
        const { post } = await serve(test, app)
        const { status, text } = await post('/login', guess)
        assert.deepEqual([status, JSON.parse(text), seen.verified], [500, { failed }, 0])
      }
    })

    it('a success forgives its account and gives back its address', async (test) => {
      const one = limiter()
      const { app } = login([guard({ limiter: one, keys })])
      const { post } = await serve(test, app)
      for (let n = 0; n < 4; n += 1) await post('/login', guess)
      assert.equal((await post('/login', { ...guess, password: 'right' })).status, 204)
      assert.equal(one.peekSync(account.key(guess.email, network('127.0.0.1'))).remaining, 5)
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 996)
    })

    it('a handler that throws leaves the attempt counted, unless it cancels', async (test) => {
      const one = limiter()
      const { app } = login([guard({ limiter: one, keys })], async (req) => {
        if (req.body.cancel) await req.attempt.cancel()
        throw new Error('the database is gone')
      })
      const { post } = await serve(test, app)
      const remaining = () => one.peekSync(account.key(guess.email, network('127.0.0.1'))).remaining
      assert.equal((await post('/login', guess)).status, 500)
      assert.equal(remaining(), 4)
      assert.equal((await post('/login', { ...guess, cancel: true })).status, 500)
      assert.equal(remaining(), 4)
    })

    it('a denial after somebody else has answered changes nothing and ends nothing', async (test) => {
      const app = express()
      app.use((_req, res, next) => {
        res.sendStatus(503)
        next()
      })
      const denied = async () => [new StrikeRule('answered', { threshold: 1, lockoutWindow: '1h' }).key('ann')]
      app.post('/', guard({ limiter: limiter(), keys: denied }))
      const odd = async () => [ip.ipKey('nowhere')]
      app.post('/odd', guard({ limiter: limiter(), keys: odd }))
      app.use((_req, _res, _next) => {})
      const { post } = await serve(test, app)
      for (const path of ['/', '/', '/', '/odd', '/']) assert.equal((await post(path, {})).status, 503)
    })

    it('a client that hangs up leaves the attempt counted', async (test) => {
      const one = limiter()
      const { app } = login([guard({ limiter: one, keys })], () => new Promise(() => {}))
      const { origin } = await serve(test, app)
      const hung = request(`${origin}/login`, { method: 'POST', headers: { 'content-type': 'application/json' } })
      hung.on('error', () => {})
      hung.end(JSON.stringify(guess))
      const counted = account.key(guess.email, network('127.0.0.1'))
      while (one.peekSync(counted).remaining === 5) await new Promise((resolve) => setTimeout(resolve, 2))
      const closed = new Promise((resolve) => hung.once('close', resolve))
      hung.destroy()
      await closed
      await new Promise((resolve) => setTimeout(resolve, 20))
      assert.equal(one.peekSync(counted).remaining, 4)
    })

    it('a second guard of the same limiter counts only the new keys, under the same attempt', async (test) => {
      const one = limiter()
      const attempts = []
      const note = (req, _res, next) => next(attempts.push(req.attempt) > 2 ? new Error('too often') : undefined)
      const guards = [
        guard({ limiter: one, keys: (req) => ip.ipKey(req.ip) }),
        note,
        guard({ limiter: one, keys }),
        note,
      ]
      const { app } = login(guards)
      const { post } = await serve(test, app)
      assert.equal((await post('/login', { ...guess, password: 'right' })).status, 204)
      assert.ok(attempts[0] && attempts[0] === attempts[1])
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 1000)
      assert.equal(one.stats().allowed['login-ip'], 1)
      assert.equal(one.stats().allowed['login-account-ip'], 1)
    })

    it('a second guard that denies answers 429 and leaves the first count', async (test) => {
      const one = limiter()
      const { app, seen } = login([
        guard({ limiter: one, keys: (req) => ip.ipKey(req.ip) }),
        guard({ limiter: one, keys }),
      ])
      const { post } = await serve(test, app)
      for (let n = 0; n < 5; n += 1) await post('/login', guess)
      assert.equal((await post('/login', guess)).status, 429)
      assert.equal(seen.verified, 5)
      assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 994)
    })

    it('guards of two limiters have an attempt each', async (test) => {
      const [first, second] = [limiter(), limiter()]
      const of = (req) => ip.ipKey(req.ip)
      const { app } = login(
        [guard({ limiter: first, keys: of }), guard({ limiter: second, keys: of })],
        async (req, res) => {
          assert.equal(req.attempt, attemptOf(req, second))
          await attemptOf(req, first).cancel()
          res.sendStatus(204)
        },
      )
      const { post } = await serve(test, app)
      assert.equal((await post('/login', guess)).status, 204)
      assert.equal(first.peekSync(ip.ipKey('127.0.0.1')).remaining, 1000)
      assert.equal(second.peekSync(ip.ipKey('127.0.0.1')).remaining, 999)
    })
  })
}

it('a guard without a limiter or keys, or with an unknown option, is refused when it is made', () => {
  const limiter = new Limiter()
  for (const options of [undefined, {}, { limiter }, { limiter: {}, keys }, { limiter, keys, kost: 1 }]) {
    assert.throws(() => guard(options), ConfigError)
  }
})
