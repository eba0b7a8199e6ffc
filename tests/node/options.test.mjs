/**
 * What every public function accepts as options and arguments: no value of a wrong type, and nothing that all objects
 * inherit.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as doorkeep from 'doorkeep'
import * as ofExpress from 'doorkeep/express'
import { DoorkeepStore } from 'doorkeep/express-rate-limit'
import * as ofFastify from 'doorkeep/fastify'
import * as ofNest from 'doorkeep/nestjs'
import { instrument } from 'doorkeep/opentelemetry'
import { register } from 'doorkeep/prometheus'
import fastify from 'fastify'
import { runScript } from './support/scripts.mjs'

const {
  AttemptDenied,
  AttemptLimiter,
  ClientIp,
  FixedWindow,
  IssueGuard,
  Limiter,
  RedisStore,
  Rule,
  StrikeRule,
  TokenBucket,
} = doorkeep
const rule = new Rule('login', '5/1m', { by: ['account'] })
const ip = new Rule('login-ip', '5/1m', { by: ['address'] })
const key = rule.key('ann')
const store = new RedisStore('redis://127.0.0.1:1/0')
const limiter = new Limiter()
const decision = limiter.decideSync(key)
const keys = () => key

/** What a caller may pass by mistake instead of options written as `{ ... }`. */
const odd = [
  store,
  limiter,
  rule,
  key,
  new ClientIp(),
  decision,
  [],
  [rule],
  new Map(),
  new Date(0),
  5,
  'text',
  true,
  () => {},
]

const takingOptions = {
  'new Limiter': (options) => new Limiter(options),
  'new AttemptLimiter': (options) => new AttemptLimiter(options),
  'new TokenBucket': (options) => new TokenBucket(options),
  'new FixedWindow': (options) => new FixedWindow(options),
  'Limiter.fromConfig': (options) => Limiter.fromConfig(options),
  'new RedisStore': (options) => new RedisStore('redis://127.0.0.1:1/0', options),
  'new Rule': (options) => new Rule('login', '5/1m', options),
  'new StrikeRule': (options) => new StrikeRule('login', options),
  'new ClientIp': (options) => new ClientIp(options),
  canonicalEmail: (options) => doorkeep.canonicalEmail('ann@example.com', options),
  lint: (options) => doorkeep.lint([rule], options),
  'http.headers': (options) => doorkeep.http.headers(decision, options),
  'new AttemptDenied': (options) => typeof options !== 'string' && new AttemptDenied(decision, options),
  decideSync: (options) => limiter.decideSync(key, options),
  allowSync: (options) => limiter.allowSync(key, options),
  peekSync: (options) => limiter.peekSync(key, options),
  attemptSync: (options) => limiter.attemptSync(key, options),
  runSync: (options) => limiter.runSync(key, () => 5, options),
  successSync: (options) => new Limiter().attemptSync(key).successSync(options),
  extendSync: (options) => new Limiter().attemptSync(key).extendSync(key, options),
  'express guard': ofExpress.guard,
  'express addressLimit': ofExpress.addressLimit,
  'fastify guard': ofFastify.guard,
  'nestjs guard': ofNest.guard,
  'nestjs Guarded': ofNest.Guarded,
  'nestjs addressGuard': ofNest.addressGuard,
  'DoorkeepModule.forRoot': (options) => ofNest.DoorkeepModule.forRoot(options),
  'new DoorkeepStore': (options) => new DoorkeepStore(options),
  register: (options) => register(limiter, options),
  instrument: (options) => instrument(limiter, options),
}

const config = (error) => error.code === 'DOORKEEP_CONFIG'

describe('options that are not a plain object are refused by', () => {
  for (const [name, call] of Object.entries(takingOptions)) {
    it(name, () => {
      for (const options of odd) {
        if (name === 'new AttemptDenied' && typeof options === 'string') continue
        assert.throws(() => call(options), config, String(options))
      }
    })
  }

  it('new IssueGuard, which also accepts a function', () => {
    for (const options of odd.filter((one) => typeof one !== 'function')) {
      assert.throws(() => new IssueGuard(new TokenBucket(), options), config, String(options))
    }
  })

  it('cancelSync and network, which also accept a number', () => {
    for (const at of odd.filter((one) => typeof one !== 'number')) {
      assert.throws(() => limiter.attemptSync(key, { cost: 0 }).cancelSync(at), config, String(at))
      assert.throws(() => doorkeep.network('203.0.113.9', at), config, String(at))
    }
  })

  it('the plugin of Fastify', async (test) => {
    for (const options of odd.filter((one) => typeof one === 'object')) {
      const app = fastify()
      test.after(() => app.close())
      app.register(ofFastify.doorkeep, options)
      await assert.rejects(
        async () => app.ready(),
        (error) => error instanceof Error,
        String(options),
      )
    }
  })
})

describe('an argument of a wrong type is a ConfigError', () => {
  const refused = (message) => ({ code: 'DOORKEEP_CONFIG', message })

  it('the values of keysFor, and its rules', () => {
    for (const values of [...odd, undefined, null, 'address']) {
      const plain = 'values must be a plain object'
      assert.throws(() => doorkeep.keysFor([rule], values), refused(plain), String(values))
    }
    for (const rules of [undefined, null, 5, {}, 'login', [key], ['login'], limiter, [undefined]]) {
      const made = 'rules must be made by Rule or StrikeRule'
      assert.throws(() => doorkeep.keysFor(rules, { account: 'ann' }), refused(made), String(rules))
    }
  })

  it('an undefined address where keysFor needs one: a request without an address has null', () => {
    const named = refused('a rule keyed by the address needs an address, or none by name, rule=`login-ip`')
    for (const values of [{}, { address: undefined }, { address: undefined, account: 'ann' }]) {
      assert.throws(() => doorkeep.keysFor([ip, rule], values), named)
    }
    assert.equal(doorkeep.keysFor([ip, rule], { address: null, account: 'ann' }).length, 1)
  })

  it('the forgiven rules of lint', () => {
    for (const forgive of [5, new Set([rule]), [5], [key], [{ name: 'login' }]]) {
      const message = 'forgive must list rules or their names'
      assert.throws(() => doorkeep.lint([rule], { forgive }), refused(message), String(forgive))
    }
  })

  it('the limiter of a guard and of a module', () => {
    for (const one of [undefined, null, store, rule, {}, Limiter]) {
      assert.throws(() => ofExpress.guard({ limiter: one, keys }), refused('limiter must be a Limiter'))
      assert.throws(() => ofFastify.guard({ limiter: one, keys }), refused('limiter must be a Limiter'))
      assert.throws(() => ofNest.DoorkeepModule.forRoot({ limiter: one }), refused('limiter must be a Limiter'))
      if (one) assert.throws(() => ofNest.guard({ limiter: one, keys }), refused('limiter must be a Limiter'))
    }
  })

  it('the rules and the wait of a guard of Nest, when it is made', () => {
    assert.throws(() => ofNest.addressGuard({ rules: [rule] }), refused("rules must be rules by ['address']"))
    assert.throws(() => ofNest.addressGuard({ rules: [ip], clientIp: {} }), refused('clientIp must be a ClientIp'))
    assert.throws(() => ofNest.guard({ keys, roundUp: '1500ms' }), config)
  })

  it('the URL of a store', () => {
    for (const url of [{ url: 'redis://127.0.0.1/0' }, undefined, 5, store, new URL('redis://127.0.0.1/0')]) {
      assert.throws(() => new RedisStore(url), config)
    }
  })
})

describe('what was put on Object.prototype', () => {
  /** Runs a program in which each object inherits these; returns what it prints. */
  const polluted = async (before, after) => {
    const { status, stdout, stderr } = await runScript(`
      const doorkeep = require('doorkeep')
      const { AttemptLimiter, ClientIp, FixedWindow, keysFor, Limiter, Rule, StrikeRule, TokenBucket } = doorkeep
      // All names of options but "timeout", which breaks Node itself.
      const pollute = () => {
        const inherited = {
          cost: 0, now: 5, limiter: 5, keys: 5, rules: 5, clientIp: 5, roundUp: 5, rateLimit: true, giveBackOn: 5,
          forgive: 5, giveBack: 5, forgiveAddress: 5, address: '198.51.100.7', account: 'inherited', threshold: 1,
          lockoutWindow: 5, rates: 5, by: ['x'], secret: 5, ipv6Prefix: 5, store: 5, onError: 'open', clock: 5,
          capacity: 5, redis: 5, prefix: 5, onEvent: 5, failure: { code: 'x', message: 'inherited' },
          trustedProxies: ['0.0.0.0/0'], header: 5, dropTags: true, dropGmailDots: true, junk: 'junk', raw: 5, server: 5,
        }
        for (const [name, value] of Object.entries(inherited)) {
          Object.defineProperty(Object.prototype, name, { value, enumerable: true, writable: true, configurable: true })
        }
      }
      const main = async () => {
        ${before}
        pollute()
        ${after}
      }
      main().then(() => process.exit(), (error) => { console.log(error); process.exit(1) })`)
    assert.equal(status, 0, stdout + stderr)
    return stdout
  }

  it('is not an option of a limiter, a rule or a call', async () => {
    const said = await polluted(
      '',
      `
      const limiter = new Limiter({ capacity: 100, clock: () => 1000, store: undefined, onError: undefined })
      const [pair, ip] = [new StrikeRule('pair', { threshold: 2, lockoutWindow: '1m', by: ['account'] }), new Rule('ip', '5/1m', { by: ['address'] })]
      const keys = keysFor([pair, ip], { address: '203.0.113.9', account: 'ann' })
      console.log(ip.by.join(), ip.ipv6Prefix, keysFor(pair, { account: 'ann' }).length)
      try { keysFor([ip], { account: 'ann' }) } catch (error) { console.log(error.code) }
      console.log((await limiter.attempt(keys, {})).allowed, limiter.allowSync(keys, { cost: 1 }), limiter.allowSync(keys, {}), await limiter.allow(keys))
      console.log(limiter.peekSync(keys[1], {}).remaining)
      const other = Limiter.fromConfig({ rules: { a: { rates: '5/1m', by: ['address'] }, b: '5/1m', c: { threshold: 2, lockoutWindow: '1m' } } })
      console.log(Object.keys(other.rules).join(), other.rules.c.threshold, other.store)
      const [strikes, bucket, window] = [new AttemptLimiter({ threshold: 2, lockoutWindow: '1m' }), new TokenBucket({ rate: 1 }), new FixedWindow({ limit: 1, window: '1m' })]
      console.log(strikes.attemptSync('a', {}), strikes.attemptSync('a'), strikes.attemptSync('a'), bucket.allowSync('a', {}), bucket.allowSync('a'), window.consumeSync('a').allowed, window.consumeSync('a').allowed)
      console.log(new ClientIp({}).resolve('203.0.113.9', { 'x-forwarded-for': '198.51.100.7' }), doorkeep.canonicalEmail('a.b+c@gmail.com', {}))
      console.log((await limiter.attempt(ip.ipKey('203.0.113.8'))).successSync({}), limiter.peekSync(ip.ipKey('203.0.113.8'), {}).remaining)
      const ran = await limiter.run(ip.ipKey('203.0.113.7'), () => { throw new Error('x') }, {}).catch((error) => error.message)
      console.log(ran, limiter.peekSync(ip.ipKey('203.0.113.7')).remaining)`,
    )
    assert.deepEqual(said.trim().split('\n'), [
      'address 64 1',
      'DOORKEEP_CONFIG',
      'true true false false',
      '3',
      'a,b,c 2 undefined',
      '1 2 0 true false true false',
      '203.0.113.9 a.b+c@gmail.com',
      'true 4',
      'x 4',
    ])
  })

  it('is not an option of a limiter, a call or a rule that is made without options', async () => {
    const printed = await polluted(
      '',
      `
      const limiter = new Limiter()
      const key = new Rule('login', '5/1m').key('ann')
      console.log(limiter.store, limiter.decideSync(key).remaining, limiter.peekSync(key).remaining)
      const failing = () => { throw new TypeError('failed') }
      console.log(await limiter.run(key, failing).catch((error) => error.message), limiter.peekSync(key).remaining)
      console.log(limiter.attemptSync(key).successSync(), limiter.peekSync(key).remaining)
      for (const Kind of [AttemptLimiter, TokenBucket, FixedWindow]) {
        try { console.log(new Kind().allowSync('ann')) } catch (error) { console.log(error.message) }
      }
      console.log(new ClientIp().resolve('203.0.113.9', { 'x-forwarded-for': '198.51.100.7' }))`,
    )
    assert.deepEqual(printed.trim().split('\n'), [
      'undefined 4 4',
      'failed 3',
      'true 2',
      'threshold is required',
      'true',
      'limit is required',
      '203.0.113.9',
    ])
  })

  const send = `
    const post = (port) => new Promise((resolve, reject) => {
      const body = JSON.stringify({ email: 'ann@example.com' })
      const sent = require('node:http').request({ port, host: '127.0.0.1', path: '/login', method: 'POST', headers: { 'content-type': 'application/json', 'content-length': String(body.length), 'x-forwarded-for': '198.51.100.7' } }, (res) => {
        res.resume()
        res.on('end', () => resolve(res.statusCode + (res.headers['ratelimit'] ?? '')))
      })
      sent.on('error', reject)
      sent.end(body)
    })
    const statuses = []
    for (let n = 0; n < 5; n += 1) statuses.push(await post(port))
    console.log(statuses.join())`
  const rules = `
    const limiter = new Limiter()
    const ip = new Rule('ip', '1000/1m', { by: ['address'] })
    const pair = new StrikeRule('pair', { threshold: 3, lockoutWindow: '1h', by: ['account', 'address'] })
    const clientIp = new ClientIp()`
  const keysOf =
    'keys: (req) => keysFor([ip, pair], { address: clientAddress(req, clientIp), account: req.body.email })'

  it('is not an option of a guard of Express', async () => {
    const said = await polluted(
      `${rules}
      const { addressLimit, answerErrors, clientAddress, guard } = require('doorkeep/express')
      const express = require('express5')
      const app = express()
      app.use(addressLimit({ limiter, rules: [ip] }), express.json())
      app.post('/login', guard({ limiter, ${keysOf} }), (req, res) => res.status(401).end())
      app.use(answerErrors())
      const server = await new Promise((done) => { const s = app.listen(0, '127.0.0.1', () => done(s)) })
      const { port } = server.address()`,
      `addressLimit({ limiter, rules: [ip] })
      guard({ limiter, keys: () => 5 })
      ${send}`,
    )
    assert.equal(said, '401,401,401,429,429\n')
  })

  it('is not an option of a guard of Fastify', async () => {
    const said = await polluted(
      `${rules}
      const { clientAddress, doorkeep: plugin, guard } = require('doorkeep/fastify')
      const app = require('fastify')()
      await app.register(plugin, { limiter, rules: [ip] })
      app.post('/login', { preHandler: guard({ limiter, ${keysOf} }) }, async (req, reply) => reply.code(401).send())
      await app.listen({ port: 0, host: '127.0.0.1' })
      const { port } = app.server.address()`,
      `guard({ limiter, keys: () => 5 })
      ${send}`,
    )
    assert.equal(said, '401,401,401,429,429\n')
  })

  it('is not an option of a guard of Nest', async () => {
    const said = await polluted(
      `${rules}
      require('reflect-metadata')
      const { clientAddress, addressGuard, guard } = require('doorkeep/nestjs')
      const { answering } = { answering: [new (addressGuard({ limiter, rules: [ip] }))(), new (guard({ limiter, ${keysOf} }))()] }
      const server = require('node:http').createServer(async (req, res) => {
        req.body = { email: 'ann@example.com' }
        res.header = res.setHeader
        const context = { getType: () => 'http', switchToHttp: () => ({ getRequest: () => req, getResponse: () => res }) }
        try {
          for (const one of answering) await one.canActivate(context)
          res.statusCode = 401
        } catch (error) {
          res.statusCode = error.getStatus?.() ?? 500
        }
        res.end()
      })
      await new Promise((done) => server.listen(0, '127.0.0.1', done))
      const { port } = server.address()`,
      `new (addressGuard({ limiter, rules: [ip] }))()
      new (guard({ keys: () => 5 }))(limiter)
      ${send}`,
    )
    assert.equal(said, '401,401,401,429,429\n')
  })
})
