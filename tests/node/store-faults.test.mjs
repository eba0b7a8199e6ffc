/** What a limiter answers while its server fails, and that it recovers. Rows of one matrix of faults. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { AttemptLimiter, FixedWindow, Limiter, Outcome, Rule, StrikeRule, TokenBucket } from 'doorkeep'
import { startProxy } from './support/proxy.mjs'
import { freePort, startServer } from './support/redis.mjs'
import { atOnce, heartbeat, inTime, many, openStore, until } from './support/stores.mjs'

const dead = async () => `redis://127.0.0.1:${await freePort()}/0`
const strikes = (store, onError) =>
  new AttemptLimiter({ threshold: 3, lockoutWindow: '15m', name: 'strikes', store, onError })

it('F01 a refused connection is answered immediately, by local tables that deny as the rules do', async (test) => {
  const { store, seen } = openStore(test, await dead())
  const limiter = strikes(store)
  const answers = []
  for (let n = 0; n < 4; n += 1) answers.push(await atOnce(() => limiter.decide('ann')))
  assert.deepEqual(
    answers.map(({ outcome, degraded }) => [outcome, degraded]),
    [
      [Outcome.Allowed, true],
      [Outcome.Allowed, true],
      [Outcome.AllowedLastAttempt, true],
      [Outcome.Denied, true],
    ],
  )
  assert.deepEqual(seen(), ['store_down'])
  assert.equal(await limiter.locked('ann'), true)
  assert.ok((await limiter.retryAfterMs('ann')) > 0)
  assert.equal(await limiter.reset('ann'), false)
  assert.equal(await limiter.locked('ann'), false)
  assert.equal(limiter.stats().storeFailed.local, 4 + 2 + 1 + 1)
})

it('F01 open admits without counting, closed denies as unavailable; neither is an error', async (test) => {
  const { store } = openStore(test, await dead(), { onError: 'open' })
  const rule = new StrikeRule('account', { threshold: 1, lockoutWindow: '15m' })
  const open = new Limiter({ store })
  for (let n = 0; n < 3; n += 1) {
    const { allowed, outcome, degraded, engaged } = await atOnce(() => open.decide(rule.key('ann')))
    assert.deepEqual([allowed, outcome, degraded, engaged], [true, Outcome.Allowed, true, []])
  }
  assert.equal(await strikes(store).locked('ann'), false)
  assert.equal(await new TokenBucket({ rate: 1, name: 'bucket', store }).allowN('ann', 1), true)

  const closed = new Limiter({ store, onError: 'closed' })
  const attempt = await atOnce(() => closed.attempt(rule.key('ann')))
  const { outcome, reason, retryAfterMs, retryAfterSeconds } = attempt.decision
  assert.deepEqual([outcome, reason, retryAfterMs, retryAfterSeconds], [Outcome.Denied, 'unavailable', null, null])
  assert.deepEqual([await attempt.success(), await attempt.cancel()], [false, false])
  assert.equal(await strikes(store, 'closed').attempt('ann'), Outcome.Denied)
  assert.equal(await strikes(store, 'closed').locked('ann'), true)
  assert.equal(await strikes(store, 'closed').retryAfterMs('ann'), null)
  assert.equal(await new TokenBucket({ rate: 1, name: 'bucket', store, onError: 'closed' }).allow('ann'), false)
  const window = new FixedWindow({ limit: 1, window: '1m', name: 'window', store, onError: 'closed' })
  assert.equal((await window.consume('ann')).reason, 'unavailable')
  const { decision, value } = await closed.run(rule.key('ann'), () => assert.fail('not admitted'))
  assert.deepEqual([decision.reason, value], ['unavailable', undefined])
})

it('F02 100 calls to a silent server end in one timeout while the loop runs; then the server is used again', async (test) => {
  const server = await startServer(test)
  const { store, seen } = openStore(test, server.url)
  const rule = new Rule('login', '1000/1h')
  const limiter = new Limiter({ store })
  assert.equal((await limiter.decide(rule.key('ann'))).remaining, 999)
  server.freeze()
  const late = await heartbeat(async () => {
    const answers = await inTime(() => many(100, () => limiter.decide(rule.key('ann'))))
    assert.ok(answers.every(({ allowed, degraded }) => allowed && degraded))
  })
  assert.ok(late < 100, `the loop stood still for ${late} ms`)
  assert.equal((await atOnce(() => limiter.decide(rule.key('ann')))).degraded, true)
  assert.deepEqual(seen(), ['store_down'])
  server.thaw()
  await until(async () => !(await limiter.peek(rule.key('ann'))).degraded)
  assert.deepEqual(seen(), ['store_down', 'store_up'])
  // The calls that it accepted before it stopped, at most once each; no reply belonged to another call.
  const { remaining } = await limiter.decide(rule.key('ann'))
  assert.ok(remaining <= 998 && remaining >= 998 - 100, `${remaining} left`)
  assert.equal((await limiter.decide(rule.key('bob'))).remaining, 999)
})

it('F05 a flapping connection admits nothing extra when closed, and each change is reported once', async (test) => {
  const server = await startServer(test)
  const proxy = await startProxy(test, server.port)
  const { store, seen } = openStore(test, proxy.url, { onError: 'closed' })
  const rule = new Rule('login', '10/1h')
  const limiter = new Limiter({ store })
  let admitted = 0
  let transitions = 0
  for (let n = 0; n < 6; n += 1) {
    proxy.set(n % 2 ? 'cut' : 'pass')
    transitions += 1
    const end = performance.now() + 500
    while (performance.now() < end) {
      const { allowed } = await inTime(() => limiter.decide(rule.key('ann')))
      admitted += Number(allowed)
      await sleep(5)
    }
  }
  proxy.set('pass')
  await until(async () => (await limiter.peek(rule.key('ann'))).reason !== 'unavailable')
  assert.equal(admitted, 10)
  assert.ok(seen().length <= 2 * transitions, seen().join())
  assert.equal(seen().at(-1), 'store_up')
})

it('F07 a server that is killed and comes back empty admits at most one budget more', async (test) => {
  const server = await startServer(test)
  const { store, seen } = openStore(test, server.url, { onError: 'closed' })
  const limiter = strikes(store)
  const outcomes = []
  for (let n = 0; n < 2; n += 1) outcomes.push(await limiter.attempt('ann'))
  await server.stop()
  outcomes.push(await inTime(() => limiter.attempt('ann')), await atOnce(() => limiter.attempt('ann')))
  assert.ok(await server.start())
  await until(async () => !(await limiter.locked('ann')))
  for (let n = 0; n < 6; n += 1) outcomes.push(await limiter.attempt('ann'))
  assert.deepEqual(outcomes, [1, 1, 0, 0, 1, 1, 2, 0, 0, 0])
  assert.deepEqual(seen(), ['store_down', 'store_up'])
})

it('F07 without a listener the end of an outage is a warning, as its start is', async (test) => {
  const server = await startServer(test)
  const warnings = []
  const listen = ({ name, code, message }) => name === 'DoorkeepWarning' && warnings.push(`${code} ${message}`)
  process.on('warning', listen)
  test.after(() => process.off('warning', listen))
  const { store } = openStore(test, server.url, { onEvent: undefined })
  const limiter = strikes(store)
  await server.stop()
  assert.equal((await inTime(() => limiter.decide('ann'))).degraded, true)
  assert.ok(await server.start())
  await until(async () => !(await limiter.decide('ann')).degraded)
  await until(() => warnings.length === 2)
  const place = `127.0.0.1:${server.port}`
  assert.ok(warnings[0].startsWith(`DOORKEEP_STORE_DOWN store at ${place} does not answer: `), warnings[0])
  assert.equal(warnings[1], `DOORKEEP_STORE_UP store at ${place} answers again`)
})

it('F08 a flushed script under 20 callers is not an error, and nothing is counted twice', async (test) => {
  for (const engine of ['Redis', 'Valkey']) {
    const server = await startServer(test, engine)
    const { store, events } = openStore(test, server.url, { timeout: '2s', onError: 'closed' })
    const rule = new Rule('login', '1000/1h')
    const limiter = new Limiter({ store })
    const caller = async () => {
      for (let n = 0; n < 10; n += 1) assert.equal((await limiter.decide(rule.key('ann'))).allowed, true)
    }
    const flush = async () => {
      for (let n = 0; n < 5; n += 1) assert.equal(await server.ask('SCRIPT', 'FLUSH'), '+OK')
    }
    await Promise.all([...Array.from({ length: 20 }, caller), flush()])
    const { remaining } = await limiter.peek(rule.key('ann'))
    assert.ok(remaining === 800 || remaining === 801, `${remaining} left: 200 counted, and what flowed back meanwhile`)
    assert.deepEqual(events, [])
  }
})

it('F10 out of memory a locked key keeps its wait, a new one is answered by onError, and the breaker stays closed', async (test) => {
  const server = await startServer(test)
  const { store, events } = openStore(test, server.url, { onError: 'closed' })
  const limiter = strikes(store)
  for (let n = 0; n < 3; n += 1) await limiter.attempt('ann')
  await server.ask('CONFIG', 'SET', 'maxmemory', '1')
  for (let n = 0; n < 3; n += 1) {
    const locked = await limiter.decide('ann')
    assert.deepEqual([locked.reason, locked.degraded], ['locked', false])
    assert.ok(locked.retryAfterMs > 0)
    assert.equal((await limiter.decide('bob')).reason, 'unavailable')
  }
  await server.ask('CONFIG', 'SET', 'maxmemory', '0')
  assert.equal((await limiter.decide('bob')).allowed, true)
  assert.ok(events.length > 0)
  for (const { type, why } of events) assert.deepEqual([type, why], ['store_refused', 'OOM'])
})

it('F11 a server that becomes a replica works again when it is promoted, without a restart', async (test) => {
  const [server, primary] = [await startServer(test), await startServer(test)]
  const { store } = openStore(test, server.url, { onError: 'closed' })
  const limiter = strikes(store)
  assert.equal(await limiter.attempt('ann'), Outcome.Allowed)
  await server.ask('REPLICAOF', '127.0.0.1', primary.port)
  assert.equal((await inTime(() => limiter.decide('bob'))).reason, 'unavailable')
  await server.ask('REPLICAOF', 'NO', 'ONE')
  await until(async () => (await inTime(() => limiter.decide('bob'))).allowed)
})

it('F27 a reply that arrived while the loop was blocked is used, and the breaker stays closed', async (test) => {
  const server = await startServer(test)
  const { store, events } = openStore(test, server.url)
  const limiter = new Limiter({ store })
  const answers = many(20, () => limiter.decide(new Rule('login', '1000/1h').key('ann')))
  for (const start = performance.now(); performance.now() - start < 1000; );
  assert.ok((await answers).every(({ degraded }) => !degraded))
  assert.deepEqual(events, [])
})

it('F31 a connection that was killed or closed while idle goes unnoticed, and locked keys stay locked', async (test) => {
  const server = await startServer(test)
  const { store, events } = openStore(test, server.url)
  const limiter = strikes(store)
  for (let n = 0; n < 3; n += 1) await limiter.attempt('ann')
  const killed = () => server.ask('CLIENT', 'KILL', 'TYPE', 'normal')
  const closed = async () => {
    await server.ask('CONFIG', 'SET', 'timeout', '1')
    await until(async () => (await server.text('CLIENT', 'LIST')).trim().split('\n').length === 1)
    await server.ask('CONFIG', 'SET', 'timeout', '0')
  }
  for (const end of [killed, closed]) {
    await end()
    const { reason, degraded } = await inTime(() => limiter.decide('ann'))
    assert.deepEqual([reason, degraded], ['locked', false])
  }
  assert.deepEqual(events, [])
  assert.deepEqual(limiter.stats().storeFailed, {})
})

it('calls in flight when their store is closed are answered in time', async (test) => {
  const server = await startServer(test)
  const { store } = openStore(test, server.url, { onError: 'closed' })
  const limiter = new Limiter({ store })
  const rule = new Rule('login', '1000/1h')
  await limiter.decide(rule.key('ann'))
  const answers = many(100, () => inTime(() => limiter.decide(rule.key('ann'))))
  await store.close()
  for (const { allowed, reason } of await answers) assert.ok(allowed || reason === 'unavailable')
  assert.equal((await atOnce(() => limiter.decide(rule.key('ann')))).reason, 'unavailable')
})

it('F29 an attempt whose reply is lost is counted once', async (test) => {
  const server = await startServer(test)
  const proxy = await startProxy(test, server.port)
  const { store } = openStore(test, proxy.url, { onError: 'closed' })
  const direct = new Limiter({ store: openStore(test, server.url).store })
  const rule = new Rule('login', '10/1h')
  const limiter = new Limiter({ store })
  assert.equal((await limiter.decide(rule.key('ann'))).remaining, 9)
  proxy.set('drop-down')
  assert.equal((await inTime(() => limiter.decide(rule.key('ann')))).reason, 'unavailable')
  proxy.set('pass')
  await sleep(50)
  assert.equal((await direct.peek(rule.key('ann'))).remaining, 8)
  await until(async () => (await limiter.peek(rule.key('ann'))).reason !== 'unavailable')
  assert.equal((await direct.peek(rule.key('ann'))).remaining, 8)
})
