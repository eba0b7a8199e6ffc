/** The store behind express-rate-limit's own middleware, over HTTP, in Express 4 and 5. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError, InvalidKeyError, LimiterUnavailable, ManualClock } from 'doorkeep'
import { DoorkeepStore } from 'doorkeep/express-rate-limit'
import { rateLimit } from 'express-rate-limit'
import express4 from 'express4'
import express5 from 'express5'
import { freePort, startServer } from './support/redis.mjs'
import { serve } from './support/server.mjs'
import { many, openStore } from './support/stores.mjs'

const MINUTE = 60_000
const silent = { error() {}, warn() {} }
const memory = (options) => new DoorkeepStore({ clock: new ManualClock(1000), ...options })

for (const [version, express] of [
  ['Express 4', express4],
  ['Express 5', express5],
]) {
  /** A service behind `rateLimit`; `handle` answers, by default with 200. */
  const guarded = async (test, options, handle = (_req, res) => res.sendStatus(200)) => {
    const app = express()
    const seen = { handled: 0 }
    app.set('env', 'test')
    app.use(rateLimit({ windowMs: MINUTE, logger: silent, standardHeaders: 'draft-8', ...options }))
    app.get('/', (req, res) => {
      seen.handled += 1
      handle(req, res)
    })
    const { origin } = await serve(test, app)
    const get = async (path = '/') => {
      const response = await fetch(origin + path)
      return { status: response.status, headers: response.headers, text: await response.text() }
    }
    return { get, seen }
  }
  const statuses = async (count, get) => (await many(count, () => get())).map(({ status }) => status)
  const times = (list, status) => list.filter((one) => one === status).length

  describe(`express-rate-limit in ${version}`, () => {
    it('of 200 parallel requests exactly the limit passes, in memory and in two services over Redis', async (test) => {
      const alone = await guarded(test, { limit: 7, store: memory() })
      assert.equal(times(await statuses(200, alone.get), 200), 7)
      assert.equal(alone.seen.handled, 7)

      const { url } = await startServer(test)
      const services = []
      for (let n = 0; n < 2; n += 1) {
        const { store } = openStore(test, url, { timeout: '2s', onError: 'closed' })
        services.push(await guarded(test, { limit: 7, store: new DoorkeepStore({ store, name: 'api' }) }))
      }
      const answers = await Promise.all(services.map(({ get }) => statuses(50, get)))
      assert.equal(times(answers.flat(), 200), 7)
      assert.equal(services[0].seen.handled + services[1].seen.handled, 7)
    })

    it('a refused request gets the wait of the rate, and hammering does not prolong it', async (test) => {
      const clock = new ManualClock(1000)
      const { get } = await guarded(test, { limit: 5, store: memory({ clock }) })
      assert.deepEqual(await statuses(5, get), [200, 200, 200, 200, 200])
      for (let n = 0; n < 11; n += 1) {
        const { status, headers } = await get()
        assert.deepEqual([status, headers.get('retry-after')], [429, String(12 - n)])
        clock.advance(1000)
      }
      assert.equal((await get()).status, 429)
      clock.advance(1000)
      assert.deepEqual(await statuses(2, get), [200, 429])
    })

    it('the headers count down what remains, and reset when they announced', async (test) => {
      const clock = new ManualClock(1000)
      const { get } = await guarded(test, { limit: 3, store: memory({ clock }) })
      const said = async () => {
        const { headers } = await get()
        return ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`)).concat(headers.get('ratelimit'))
      }
      assert.deepEqual(await said(), ['3', '2', '"3-in-1min"; r=2; t=20'])
      assert.deepEqual(await said(), ['3', '1', '"3-in-1min"; r=1; t=40'])
      clock.advance(40_000)
      assert.deepEqual(await said(), ['3', '2', '"3-in-1min"; r=2; t=20'])
    })

    it('a failed request that is skipped gives back what it counted', async (test) => {
      const { get } = await guarded(test, { limit: 2, skipFailedRequests: true, store: memory() }, (req, res) =>
        res.sendStatus(req.query.fail ? 500 : 200),
      )
      for (let n = 0; n < 10; n += 1) assert.equal((await get('/?fail=1')).status, 500)
      assert.deepEqual(await statuses(3, get), [200, 200, 429])
    })

    for (const [how, skipping] of [
      ['skipFailedRequests', { skipFailedRequests: true }],
      [
        'a skipSuccessfulRequests that takes a refusal for a success',
        { skipSuccessfulRequests: true, requestWasSuccessful: (_req, res) => res.statusCode !== 401 },
      ],
    ]) {
      it(`a refused request gives back nothing that another counted, under ${how}`, async (test) => {
        const { get, seen } = await guarded(test, { limit: 3, ...skipping, store: memory() }, (_req, res) =>
          // Under skipFailedRequests a success counts, otherwise a wrong password.
          res.sendStatus(skipping.skipFailedRequests ? 200 : 401),
        )
        await statuses(20, get)
        for (let n = 0; n < 20; n += 1) assert.equal((await get()).status, 429)
        assert.equal(seen.handled, 3)
      })
    }

    it('with the store down, local decides in memory, open lets every request pass, and closed answers 503', async (test) => {
      const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
      const answers = {}
      const faults = []
      const logger = { error: (error) => faults.push(error.code), warn() {} }
      for (const onError of ['local', 'open', 'closed']) {
        const counting = new DoorkeepStore({ store, name: 'api', onError })
        const { get } = await guarded(test, { limit: 2, store: counting, logger })
        // In parallel, so which of them is denied is not determined.
        answers[onError] = (await statuses(3, get)).sort()
        if (onError === 'closed') assert.equal((await get()).headers.get('retry-after'), '1')
      }
      assert.deepEqual(answers, { local: [200, 200, 429], open: [200, 200, 200], closed: [503, 503, 503] })
      assert.deepEqual(faults, [])
    })

    it('a request that cannot be counted is refused, even when store errors should pass', async (test) => {
      const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
      const closed = () => new DoorkeepStore({ store, name: 'api', onError: 'closed' })
      const cases = [
        [503, () => ({ limit: 2, store: closed() })],
        [400, () => ({ limit: 2, store: memory(), keyGenerator: () => '' })],
        // Without the header that is made of the key, which fails for this one.
        [400, () => ({ limit: 2, store: memory(), keyGenerator: () => undefined, standardHeaders: false })],
      ]
      for (const [expected, options] of cases) {
        const strict = await guarded(test, options())
        const lenient = await guarded(test, { passOnStoreError: true, ...options() })
        assert.deepEqual([(await strict.get()).status, (await lenient.get()).status], [expected, 429])
        assert.equal(strict.seen.handled + lenient.seen.handled, 0)
      }
    })

    it('an invalid rate fails rateLimit immediately in version 7, and every request in version 8', async (test) => {
      for (const options of [{ limit: () => 2 }, { limit: -1 }, { limit: 2, windowMs: 0 }]) {
        for (const [passOnStoreError, expected] of [
          [false, 500],
          [true, 429],
        ]) {
          const made = await guarded(test, { passOnStoreError, ...options, store: memory() }).catch((error) => error)
          if (made instanceof Error) assert.ok(made instanceof ConfigError)
          else assert.deepEqual([(await made.get()).status, made.seen.handled], [expected, 0])
        }
      }
    })

    it('a limit of 0 refuses everything', async (test) => {
      const { get } = await guarded(test, { limit: 0, validate: { limit: false }, store: memory() })
      assert.deepEqual(await statuses(3, get), [429, 429, 429])
    })
  })
}

describe('DoorkeepStore', () => {
  const ready = (options) => {
    const store = memory(options)
    store.init({ windowMs: MINUTE, limit: 5 })
    return store
  }
  const hits = async (store, key) => (await store.get(key))?.totalHits

  it('reports what a client has used, and nothing for a client without requests', async () => {
    const store = ready()
    assert.equal(await store.get('a'), undefined)
    for (let n = 0; n < 7; n += 1) await store.increment('a')
    const { totalHits, resetTime } = await store.get('a')
    assert.equal(totalHits, 5)
    const left = resetTime - Date.now()
    assert.ok(MINUTE - 1000 < left && left <= MINUTE)
    assert.equal(await store.get('b'), undefined)
    assert.equal(await store.get(''), undefined)
  })

  it('forgets one client, or all of them', async () => {
    const store = ready()
    for (const key of ['a', 'b']) await store.increment(key)
    await store.resetKey('a')
    assert.deepEqual([await hits(store, 'a'), await hits(store, 'b')], [undefined, 1])
    await store.resetKey('')
    await store.resetAll()
    assert.equal(await hits(store, 'b'), undefined)
  })

  it('takes back once what the same request counted last, and nothing for another key or without a count', async () => {
    const store = ready()
    await store.increment('a')
    await (async () => {
      await store.increment('a')
      await store.increment('b')
      await store.decrement('a')
      assert.deepEqual([await hits(store, 'a'), await hits(store, 'b')], [2, 1])
      await store.decrement('b')
      await store.decrement('b')
      assert.equal(await hits(store, 'b'), undefined)
    })()
    const other = ready()
    await other.decrement('a')
    assert.equal(await hits(other, 'a'), undefined)
  })

  it('counts nothing before rateLimit has passed it the limit', async () => {
    await assert.rejects(memory().increment('a'), ConfigError)
    assert.equal(await memory().get('a'), undefined)
    await memory().decrement('a')
  })

  it('rejects with errors that Express can answer', async (test) => {
    await assert.rejects(ready().increment(''), (error) => error instanceof InvalidKeyError && error.status === 400)
    const { store } = openStore(test, `redis://127.0.0.1:${await freePort()}/0`)
    const closed = ready({ store, name: 'api', onError: 'closed', clock: undefined })
    await assert.rejects(closed.increment('a'), (error) => error instanceof LimiterUnavailable && error.status === 503)
    assert.equal(await closed.get('a'), undefined)
  })

  it('needs a name over a store, separates limits of two names, and stores no address', async (test) => {
    const server = await startServer(test)
    const { store } = openStore(test, server.url, { timeout: '2s' })
    assert.throws(() => new DoorkeepStore({ store }), new ConfigError('a DoorkeepStore with a store must have a name'))
    const [api, search] = ['api', 'search'].map((name) => ready({ store, name, clock: undefined }))
    await api.increment('203.0.113.9')
    assert.deepEqual([await hits(api, '203.0.113.9'), await hits(search, '203.0.113.9')], [1, undefined])
    assert.deepEqual(await server.keys(), ['ratelimit:{api:6c63b13d3aa664d9cfb2d6cd47380ae1}:5/1m'])
    await assert.rejects(api.resetAll(), new ConfigError('keys in a store are reset one by one'))
    assert.deepEqual([api.localKeys, api.prefix, memory().localKeys], [false, 'api', true])
  })

  it('has stats like every limiter, and refuses unknown options', async () => {
    const store = ready()
    for (let n = 0; n < 7; n += 1) await store.increment('a')
    const { allowed, denied } = store.stats()
    assert.deepEqual([allowed, denied], [{ 'express-rate-limit': 5 }, { 'express-rate-limit': { limited: 2 } }])
    assert.throws(() => new DoorkeepStore({ limit: 5 }), ConfigError)
  })
})
