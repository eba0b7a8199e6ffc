/** What is specific to the guard and the plugin for Fastify; what all frameworks share is in `guards.test.mjs`. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, it } from 'node:test'
import { ConfigError, InvalidKeyError, Limiter, ManualClock, RateLimitExceeded, Rule, StrikeRule } from 'doorkeep'
import byDefault, { answerErrors, doorkeep, giveBack, guard } from 'doorkeep/fastify'
import fastify from 'fastify'
import fastify5_0 from 'fastify5_0'
import { startServer } from './support/redis.mjs'
import { openStore } from './support/stores.mjs'

const account = new StrikeRule('login-account', { threshold: 2, lockoutWindow: '15m', by: ['account'] })
const keys = (request) => account.key(request.body?.email)
const limiter = () => new Limiter({ clock: new ManualClock(1000) })
const payload = { email: 'ann@example.com' }

for (const [version, create] of [
  ['Fastify 5.0', fastify5_0],
  ['Fastify', fastify],
]) {
  describe(version, () => {
    const open = (test, options) => {
      const app = create(options)
      test.after(() => app.close())
      const login = (url = '/login', body = payload) => app.inject({ method: 'POST', url, payload: body })
      return { app, login }
    }

    it('a denial has the same bytes with any schema, serializer and error handler of the route', async (test) => {
      const { app, login } = open(test)
      const nothing = { type: 'object', properties: {} }
      app.setReplySerializer(() => 'serialized')
      app.setErrorHandler((_error, _request, reply) => reply.code(418).send())
      const schema = { response: { '4xx': nothing, default: nothing } }
      const preHandler = guard({ limiter: limiter(), keys })
      app.post('/login', { schema, preHandler }, async (_request, reply) => reply.code(204).send())
      const statuses = []
      for (let n = 0; n < 2; n += 1) statuses.push((await login()).statusCode)
      assert.deepEqual(statuses, [204, 204])
      const { statusCode, headers, body } = await login()
      assert.deepEqual([statusCode, headers['retry-after'], body], [429, '900', '{"error":"too many attempts"}'])
      assert.equal(headers['content-type'], 'application/json; charset=utf-8')
    })

    it('a request that the schema of a route refuses is answered before the guard counts it', async (test) => {
      const one = limiter()
      const { app, login } = open(test)
      const schema = { body: { type: 'object', required: ['email'], properties: { email: { type: 'string' } } } }
      app.post('/login', { schema, preHandler: guard({ limiter: one, keys }) }, async () => 'in')
      assert.equal((await login('/login', {})).statusCode, 400)
      assert.equal(one.size, 0)
    })

    it('a reply that another hook has sent meanwhile is not changed', async (test) => {
      const warnings = []
      const { app, login } = open(test, { logger: { level: 'warn', stream: { write: (line) => warnings.push(line) } } })
      let ran = 0
      const late = async (request) => {
        request.answer()
        return [account.key('ann')]
      }
      app.decorateRequest('answer', null)
      app.addHook('onRequest', async (request, reply) => {
        request.answer = () => reply.code(503).send('late')
      })
      app.post('/login', { preHandler: guard({ limiter: limiter(), keys: late }) }, async () => {
        ran += 1
      })
      for (let n = 0; n < 4; n += 1) {
        const { statusCode, body } = await login()
        assert.deepEqual([statusCode, body], [503, 'late'])
      }
      assert.equal(ran, 0)
      assert.deepEqual(warnings, [])
    })

    it('a guard works in any hook of a request, and in all routes of a plugin', async (test) => {
      const { app, login } = open(test)
      const fixed = () => account.key('everybody')
      app.post('/early', { onRequest: guard({ limiter: limiter(), keys: fixed }) }, async () => 'in')
      app.register(async (child) => {
        child.addHook('preHandler', guard({ limiter: limiter(), keys }))
        child.post('/one', async (request) => ({ left: request.attempt.decision.remaining }))
        child.post('/two', async () => 'in')
      })
      app.post('/free', async (request) => ({ none: request.attempt === undefined }))
      for (const status of [200, 200, 429]) assert.equal((await login('/early')).statusCode, status)
      assert.deepEqual((await login('/one')).json(), { left: 1 })
      assert.equal((await login('/two')).statusCode, 200)
      assert.equal((await login('/one')).statusCode, 429)
      assert.deepEqual((await login('/free')).json(), { none: true })
    })

    it('each request has its own attempt, even when requests overlap', async (test) => {
      const one = limiter()
      const { app, login } = open(test)
      const attempts = new Set()
      app.post('/login', { preHandler: guard({ limiter: one, keys }) }, async (request) => {
        const { attempt } = request
        await new Promise((resolve) => setTimeout(resolve, 5))
        assert.equal(request.attempt, attempt)
        attempts.add(attempt)
        return 'in'
      })
      await Promise.all(Array.from({ length: 20 }, (_, n) => login('/login', { email: `user ${n}` })))
      assert.equal(attempts.size, 20)
    })

    it('errors of doorkeep have their status when Fastify answers them, and are answered by a handler at the root', async (test) => {
      const errors = [new InvalidKeyError('empty'), new RateLimitExceeded(), new ConfigError('misspelt')]
      for (const [handler, ...said] of [
        [undefined, ['code', 'DOORKEEP_INVALID_KEY'], ['code', 'DOORKEEP_RATE_LIMIT_EXCEEDED']],
        [answerErrors(), ['error', 'invalid key'], ['error', 'too many attempts']],
      ]) {
        const { app } = open(test)
        if (handler) app.setErrorHandler(handler)
        app.get('/:at', async (request) => {
          throw errors[request.params.at]
        })
        const answers = await Promise.all(errors.map((_, at) => app.inject(`/${at}`)))
        assert.deepEqual(
          answers.map(({ headers }) => headers['cache-control']),
          ['no-store', 'no-store', undefined],
        )
        assert.deepEqual(
          answers.map(({ statusCode }) => statusCode),
          [400, 429, 500],
        )
        for (const [at, [name, value]] of said.entries()) assert.equal(answers[at].json()[name], value)
        assert.equal(answers[2].json().message, 'misspelt')
      }
    })

    it('a custom error handler gives back what a guard names', async (test) => {
      const one = limiter()
      const few = new Rule('few-ip', '9/1m', { by: ['address'] })
      const { app, login } = open(test)
      await app.register(doorkeep, { limiter: one, rules: [few] })
      app.setErrorHandler(async (error, request, reply) => {
        await giveBack(error, request, reply)
        return reply.code(error.statusCode ?? 500).send()
      })
      class Outage extends Error {}
      app.post('/login', { preHandler: guard({ limiter: one, keys, giveBackOn: Outage }) }, async ({ body }) => {
        throw body.outage ? new Outage('failed') : new Error('failed')
      })
      const left = () => [few.ipKey('127.0.0.1'), account.key(payload.email)].map((key) => one.peekSync(key).remaining)
      assert.equal((await login('/login', { ...payload, outage: true })).statusCode, 500)
      assert.deepEqual(left(), [8, 2])
      assert.equal((await login()).statusCode, 500)
      assert.deepEqual(left(), [7, 1])
    })

    describe('the plugin', () => {
      const few = new Rule('few-ip', '2/1m', { by: ['address'] })
      const options = () => ({ limiter: limiter(), rules: [few] })
      const statuses = async (app, url, times) => {
        const answers = []
        for (let n = 0; n < times; n += 1) answers.push((await app.inject(url)).statusCode)
        return answers
      }

      it('applies to the instance where it is registered and to all below it, even later ones', async (test) => {
        const { app } = open(test)
        app.register(async (child) => {
          child.get('/before', async () => 'in')
          await child.register(doorkeep, options())
          child.get('/beside', async () => 'in')
          child.register(async (grandchild) => grandchild.get('/below', async () => 'in'))
        })
        app.get('/outside', async () => 'in')
        assert.deepEqual(await statuses(app, '/outside', 4), [200, 200, 200, 200])
        assert.deepEqual(await statuses(app, '/beside', 1), [200])
        assert.deepEqual(await statuses(app, '/below', 2), [200, 429])
        assert.deepEqual(await statuses(app, '/before', 1), [429])
      })

      it('at the root also counts requests without a route', async (test) => {
        const { app } = open(test)
        await app.register(doorkeep, options())
        assert.deepEqual(await statuses(app, '/nowhere', 3), [404, 404, 429])
        assert.match(app.printPlugins(), /doorkeep/)
      })

      it('may be registered again, with another limiter, on the same instance and below', async (test) => {
        const { app } = open(test)
        await app.register(doorkeep, options())
        await app.register(doorkeep, { limiter: limiter(), rules: [new Rule('one-ip', '1/1h', { by: ['address'] })] })
        app.register(async (child) => {
          await child.register(doorkeep, options())
          child.get('/', async (request) => ({ left: request.attempt.decision.remaining }))
        })
        assert.deepEqual((await app.inject('/')).json(), { left: 1 })
        assert.equal((await app.inject('/')).headers['retry-after'], '3600')
      })

      it('answers before the body is read', async (test) => {
        const { app } = open(test)
        await app.register(doorkeep, options())
        let parsed = 0
        app.addContentTypeParser('text/odd', { parseAs: 'string' }, async () => {
          parsed += 1
        })
        app.post('/', async () => 'in')
        const post = () =>
          app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'text/odd' }, payload: 'x' })
        for (const status of [200, 200, 429, 429]) assert.equal((await post()).statusCode, status)
        assert.equal(parsed, 2)
      })

      it('leaves the store open when the application closes, since it does not own it', async (test) => {
        const server = await startServer(test)
        const { store } = openStore(test, server.url)
        const shared = new Limiter({ store })
        const { app } = open(test)
        await app.register(doorkeep, { limiter: shared, rules: [few] })
        assert.equal((await app.inject('/')).statusCode, 404)
        await app.close()
        assert.deepEqual((await shared.peek(few.ipKey('127.0.0.1'))).degraded, false)
      })

      it('refuses invalid options while the application starts', async (test) => {
        const { app } = open(test)
        app.register(doorkeep, { limiter: limiter() })
        await assert.rejects(app.ready(), ConfigError)
      })
    })
  })
}

it('import and require give the same plugin, and its default is the plugin', () => {
  const cjs = createRequire(import.meta.url)('doorkeep/fastify')
  assert.equal(doorkeep, cjs.doorkeep)
  assert.equal(doorkeep, cjs.default)
  assert.equal(doorkeep, byDefault)
  assert.equal(guard, cjs.guard)
})

it('a guard without a limiter or keys, or with an unknown option, is refused when it is made', () => {
  const one = new Limiter()
  for (const options of [undefined, {}, { limiter: one }, { limiter: {}, keys }, { limiter: one, keys, kost: 1 }]) {
    assert.throws(() => guard(options), ConfigError)
  }
})
