/** What is specific to the guards of Express 4 and 5; what all frameworks share is in `guards.test.mjs`. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  AttemptDenied,
  ConfigError,
  InvalidKeyError,
  Limiter,
  ManualClock,
  network,
  RateLimitExceeded,
  Rule,
  StrikeRule,
} from 'doorkeep'
import { addressLimit, answerErrors, giveBack, guard } from 'doorkeep/express'
import express4 from 'express4'
import express5 from 'express5'
import passport from 'passport'
import { Strategy } from 'passport-local'
import { serve } from './support/server.mjs'

const ip = new Rule('login-ip', '1000/1m', { by: ['address'] })
const account = new StrikeRule('login-account-ip', {
  threshold: 5,
  lockoutWindow: '15m',
  by: ['account', 'address'],
})
const keys = (req) => [ip.ipKey(req.ip), account.key(req.body?.email, network(req.ip))]
const annsKey = account.key('ann@example.com', network('127.0.0.1'))
const guess = { email: 'ann@example.com', password: 'wrong' }
const limiter = () => new Limiter({ clock: new ManualClock(1000) })

for (const [version, express] of [
  ['Express 4', express4],
  ['Express 5', express5],
]) {
  describe(version, () => {
    it('a denial after another answer has begun changes nothing', async (test) => {
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

    it('rules on addresses count every request of a router, before its body is read, on any route', async (test) => {
      const few = new Rule('few-ip', '3/1m', { by: ['address'] })
      const app = express()
      app.get('/outside', (_req, res) => res.sendStatus(204))
      const router = express.Router()
      router.use(addressLimit({ limiter: limiter(), rules: [few] }), express.json())
      router.get('/inside', (_req, res) => res.sendStatus(204))
      app.use('/account', router)
      app.use((error, _req, res, _next) => res.sendStatus(error.status))
      const { origin } = await serve(test, app)
      const status = async (path, options) => (await fetch(origin + path, options)).status
      const malformed = { method: 'POST', headers: { 'content-type': 'application/json' }, body: 'no json' }
      assert.equal(await status('/account/inside', malformed), 400)
      assert.equal(await status('/account/nowhere'), 404)
      assert.equal(await status('/account/inside'), 204)
      assert.equal(await status('/account/inside', malformed), 429)
      assert.equal(await status('/outside'), 204)
    })

    it('a named error leaves the guess counted once the answer has begun: the client may have read whether it was right', async (test) => {
      const one = limiter()
      const app = express()
      app.post('/', express.json(), guard({ limiter: one, keys, giveBackOn: Error }), (_req, res, next) => {
        res.write('your password is ')
        next(new Error('the template is gone'))
      })
      app.use(answerErrors())
      app.use((_error, _req, res, _next) => res.end('...'))
      const { post } = await serve(test, app)
      assert.equal((await post('/', guess)).text, 'your password is ...')
      assert.equal(one.peekSync(annsKey).remaining, 4)
    })

    it('a custom error handler gives back what a guard names, or cancels everything', async (test) => {
      const one = limiter()
      const few = new Rule('few-ip', '9/1m', { by: ['address'] })
      const app = express()
      app.use(addressLimit({ limiter: one, rules: [few] }), express.json())
      class Outage extends Error {}
      app.post('/', guard({ limiter: one, keys, giveBackOn: Outage }), (req, _res, next) => {
        const error = req.body.outage ? new Outage('failed') : new Error('failed')
        next(Object.assign(error, { cancels: req.body.cancels, status: req.body.status }))
      })
      app.use(async (error, req, res, _next) => {
        await (error.cancels ? req.attempt.cancel() : giveBack(error, req, res))
        res.sendStatus(error.status ?? 500)
      })
      const { post } = await serve(test, app)
      const left = () => [few.ipKey('127.0.0.1'), annsKey].map((key) => one.peekSync(key).remaining)
      assert.equal((await post('/', { ...guess, outage: true, status: 409 })).status, 409)
      assert.deepEqual(left(), [8, 5])
      assert.equal((await post('/', { ...guess, cancels: true })).status, 500)
      assert.deepEqual(left(), [8, 5])
      assert.equal((await post('/', guess)).status, 500)
      assert.deepEqual(left(), [7, 4])
    })

    it('errors of doorkeep have their status when Express itself answers them', async (test) => {
      const app = express()
      app.set('env', 'test')
      app.get('/:at', (req, _res, next) => next(errors[req.params.at]))
      const slow = new Rule('slow', '1/90s', { by: ['account'] }).key('ann')
      const other = limiter()
      other.decideSync(slow)
      const denied = new AttemptDenied(other.decideSync(slow), { keys: slow, roundUp: '1m' })
      const errors = [new InvalidKeyError('empty'), new RateLimitExceeded(), denied, new ConfigError('misspelt')]
      const { origin } = await serve(test, app)
      const answers = await Promise.all(errors.map((_, at) => fetch(`${origin}/${at}`)))
      const said = answers.map(({ status, headers }) => [
        status,
        ...['cache-control', 'retry-after'].map((name) => headers.get(name)),
      ])
      assert.deepEqual(said, [
        [400, 'no-store', null],
        [429, 'no-store', null],
        [429, 'no-store', '120'],
        [500, null, null],
      ])
    })

    describe('before passport-local', () => {
      /** A login in the right order: the guard, then the password, then settling. */
      const passported = async (test, verify) => {
        const one = limiter()
        const seen = { verified: 0 }
        const authenticator = new passport.Passport()
        const strategy = new Strategy({ usernameField: 'email' }, (email, password, done) => {
          seen.verified += 1
          setTimeout(() => verify(email, password, done), 5)
        })
        authenticator.use(strategy)
        const app = express()
        app.use(express.json())
        const check = authenticator.authenticate('local', { session: false })
        app.post('/login', guard({ limiter: one, keys }), check, async (req, res) => {
          await req.attempt.success({ forgive: [account], giveBack: [ip] })
          res.json({ welcome: req.user.email })
        })
        app.use(async (error, req, res, _next) => {
          await req.attempt?.cancel()
          res.status(500).json({ failed: error.message })
        })
        return { one, seen, ...(await serve(test, app)) }
      }
      const byPassword = (email, password, done) => done(null, password === 'right' ? { email } : false)

      it('a failure of passport counts, so that 500 parallel guesses verify 5 passwords', async (test) => {
        const { seen, post } = await passported(test, byPassword)
        const answers = await Promise.all(Array.from({ length: 500 }, () => post('/login', guess)))
        assert.equal(seen.verified, 5)
        assert.equal(answers.filter(({ status }) => status === 401).length, 5)
        assert.equal(answers.filter(({ status }) => status === 429).length, 495)
      })

      it('a success settles the attempt', async (test) => {
        const { one, post } = await passported(test, byPassword)
        for (let n = 0; n < 4; n += 1) assert.equal((await post('/login', guess)).status, 401)
        const { status, text } = await post('/login', { ...guess, password: 'right' })
        assert.deepEqual([status, JSON.parse(text)], [200, { welcome: 'ann@example.com' }])
        assert.equal(one.peekSync(annsKey).remaining, 5)
        assert.equal(one.peekSync(ip.ipKey('127.0.0.1')).remaining, 996)
      })

      it('a missing password is counted: passport answers it like a failure', async (test) => {
        const { one, seen, post } = await passported(test, byPassword)
        assert.equal((await post('/login', { email: guess.email })).status, 400)
        assert.equal(seen.verified, 0)
        assert.equal(one.peekSync(annsKey).remaining, 4)
      })

      it('an error of the strategy goes to the error handler, which cancels', async (test) => {
        const { one, post } = await passported(test, (_email, _password, done) => done(new Error('no database')))
        const { status, text } = await post('/login', guess)
        assert.deepEqual([status, JSON.parse(text)], [500, { failed: 'no database' }])
        assert.equal(one.peekSync(annsKey).remaining, 5)
      })
    })
  })
}

it('a guard without a limiter or keys, or with an unknown option, is refused when it is made', () => {
  const limiter = new Limiter()
  const odd = { limiter, keys, giveBackOn: ['WrongPassword'] }
  for (const options of [undefined, {}, { limiter }, { limiter: {}, keys }, { limiter, keys, kost: 1 }, odd]) {
    assert.throws(() => guard(options), ConfigError)
  }
})

it('a guard that refuses a request with an unread body warns once that its parser comes too late', async (test) => {
  const warned = []
  const remember = ({ code }) => warned.push(code)
  process.on('warning', remember)
  test.after(() => process.off('warning', remember))
  const app = express5()
  app.post('/behind', express5.json(), guard({ limiter: limiter(), keys }))
  app.post('/before', guard({ limiter: limiter(), keys }), express5.json())
  const { origin, post } = await serve(test, app)
  assert.equal((await fetch(`${origin}/before`, { method: 'POST' })).status, 400)
  assert.equal((await post('/behind', {})).status, 400)
  assert.deepEqual(warned, [])
  for (let n = 0; n < 2; n += 1) assert.equal((await post('/before', guess)).status, 400)
  assert.deepEqual(warned, ['DOORKEEP_UNREAD_BODY'])
})
