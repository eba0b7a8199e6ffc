/** Exactly as many calls are admitted as the limit says, however many run in parallel. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { AttemptLimiter, FixedWindow, Limiter, network, Outcome, Rule, StrikeRule, TokenBucket } from 'doorkeep'

const many = (count, ask) => Promise.all(Array.from({ length: count }, (_, index) => ask(index)))
const count = (list, value) => list.filter((one) => one === value).length

it('of 500 reserves of one key before any outcome is known, 4 are allowed, 1 is the last and 495 are denied', async () => {
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '1h' })
  const outcomes = (await many(500, () => strikes.reserve('ann'))).map(({ outcome }) => outcome)
  assert.equal(count(outcomes, Outcome.Allowed), 4)
  assert.equal(count(outcomes, Outcome.AllowedLastAttempt), 1)
  assert.equal(count(outcomes, Outcome.Denied), 495)
})

it('of 20 parallel correct logins at threshold 5, 5 pass, and 5 more after a reset', async () => {
  const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '15m' })
  const login = async () => {
    const outcome = await strikes.attempt('ann')
    await new Promise((resolve) => setImmediate(resolve))
    if (outcome) await strikes.reset('ann')
    return outcome
  }
  assert.equal((await many(20, login)).filter(Boolean).length, 5)
  assert.ok(await strikes.attempt('ann'))
})

it('500 runs of one account verify 5 passwords', async () => {
  const limiter = new Limiter()
  const account = new StrikeRule('account', { threshold: 5, lockoutWindow: '15m' })
  let verified = 0
  const verify = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    verified += 1
  }
  const runs = await many(500, () => limiter.run(account.key('ann'), verify))
  assert.equal(verified, 5)
  assert.equal(runs.filter(({ decision }) => decision.allowed).length, 5)
})

it('rates, buckets and windows admit exactly their count of 500 parallel calls', async () => {
  const now = 1000
  const limiter = new Limiter()
  const rule = new Rule('login', '7/1m')
  assert.equal(
    (await many(500, () => limiter.decide(rule.key('ann'), { now }))).filter(({ allowed }) => allowed).length,
    7,
  )
  const bucket = new TokenBucket({ rate: 7 })
  assert.equal(count(await many(500, () => bucket.allow('ann', { now })), true), 7)
  const window = new FixedWindow({ limit: 7, window: '1m' })
  assert.equal((await many(500, () => window.consume('ann', { now }))).filter(({ allowed }) => allowed).length, 7)
})

it('an attacker who locks a victim on purpose makes 50 attempts and still gets other accounts answered', async () => {
  const limiter = new Limiter()
  const ip = new Rule('ip', '20/1m')
  const account = new Rule('account', '100/1h')
  const pair = new StrikeRule('account-ip', { threshold: 5, lockoutWindow: '5m' })
  const attempt = (address, now) =>
    limiter.attempt([ip.ipKey(address), pair.key('bob', network(address)), account.key('bob')], { now })
  for (let n = 0; n < 50; n += 1) await attempt('203.0.113.9', n * 1000)
  assert.equal((await attempt('203.0.113.9', 51_000)).allowed, false)
  assert.equal((await attempt('198.51.100.7', 51_000)).allowed, true)
})

it('each worker thread has its own memory and its own error classes', async () => {
  const code = `
    const { parentPort } = require('node:worker_threads')
    const { AttemptLimiter, ConfigError, InvalidKeyError, Limiter, Rule } = require('doorkeep')
    const strikes = new AttemptLimiter({ threshold: 5, lockoutWindow: '1h' })
    const admitted = Array.from({ length: 100 }, () => strikes.attemptSync('ann')).filter(Boolean).length
    const rule = new Rule('login', '7/1m')
    const limiter = new Limiter()
    const allowed = Array.from({ length: 100 }, () => limiter.decideSync(rule.key('ann'))).filter((d) => d.allowed).length
    const errors = []
    try { strikes.attemptSync('') } catch (error) { errors.push(error instanceof InvalidKeyError, error.code) }
    try { new Limiter({ capacity: 0 }) } catch (error) { errors.push(error instanceof ConfigError, error.code) }
    parentPort.postMessage({ admitted, allowed, size: strikes.size, errors })
  `
  const run = () =>
    new Promise((resolve, reject) => {
      const worker = new Worker(code, { eval: true })
      let said
      worker.on('message', (message) => {
        said = message
      })
      worker.on('error', reject)
      worker.on('exit', (status) => (status === 0 ? resolve(said) : reject(new Error(`exit ${status}`))))
    })
  const errors = [true, 'DOORKEEP_INVALID_KEY', true, 'DOORKEEP_CONFIG']
  const all = await Promise.all(Array.from({ length: 4 }, run))
  assert.deepEqual(all, Array(4).fill({ admitted: 5, allowed: 7, size: 1, errors }))
})

it('worker threads can be terminated in the middle of their calls', async () => {
  const code = `
    const { parentPort } = require('node:worker_threads')
    const { Limiter, StrikeRule } = require('doorkeep')
    const limiter = new Limiter()
    const rule = new StrikeRule('login', { threshold: 3, lockoutWindow: '1h' })
    parentPort.postMessage('ready')
    for (let n = 0; ; n += 1) limiter.attemptSync(rule.key('user' + (n % 1000))).cancelSync()
  `
  for (let n = 0; n < 5; n += 1) {
    const worker = new Worker(code, { eval: true })
    await new Promise((resolve) => worker.once('message', resolve))
    assert.equal(await worker.terminate(), 1)
  }
})
