/**
 * P2 and P10: the limiters in memory, against a call that does nothing and against the peers.
 *
 * The rates are so wide that every call is admitted, which is the path that writes; P10 compares it with the other one.
 */
import { drawn, each, eachAwaited, first, ns, ratio, require, tell, turns } from './rounds.mjs'

const { AttemptLimiter, FixedWindow, Limiter, Rule, TokenBucket } = require('doorkeep')
const { RateLimiterMemory } = require('rate-limiter-flexible')
const { MemoryStore } = require('express-rate-limit')
const { noop } = require('./noop.node')

const CALLS = 100_000
const WIDE = 60_000_000
const KEYS = 100_000
const PARTS = 25
const text = (name) => name
const wide = new Rule('login', `${WIDE}/1m`)

/** Rounds of attempts that are all admitted, the fourth of a key included; every 4,000 have a limiter of their own. */
function strikes() {
  const names = first(text, 1_000)
  let limiter
  const run = each((name) => limiter.attemptSync(name), [...names, ...names, ...names, ...names])
  return () => {
    let sum = 0
    for (let part = 0; part < PARTS; part += 1) {
      limiter = new AttemptLimiter({ threshold: 5, lockoutWindow: '1d' })
      sum += run()
    }
    return sum / PARTS
  }
}

async function crossing() {
  const hot = Array(CALLS).fill(first(text, 1)[0])
  const locked = new AttemptLimiter({ threshold: 1, lockoutWindow: '1d' })
  locked.attemptSync(hot[0])
  const [floor, admitted, denied] = await turns([
    each((name) => noop(name), hot),
    strikes(),
    each((name) => locked.attemptSync(name), hot),
  ])
  for (const [what, times] of Object.entries({ admitted, locked: denied })) {
    const beside = `${ns(times)}, no-op ${ns(floor)}`
    tell('P2', `attemptSync, ${what}, vs raw no-op to a number`, 4, ratio(times, floor), beside)
  }
}

async function peers() {
  for (const [what, count, bound] of [
    ['hot', 1, 2],
    ['100 k keys', KEYS, 3],
  ]) {
    const limiter = new Limiter({ capacity: 1_000_000 })
    const flexible = new RateLimiterMemory({ points: WIDE, duration: 60 })
    const express = new MemoryStore()
    express.init({ windowMs: 60_000 })
    const texts = drawn(text, count, CALLS)
    const keys = drawn((name) => wide.key(name), count, CALLS)
    const [ours, hashed, flexibles, expresses] = await turns([
      each((key) => limiter.allowSync(key), keys),
      each((name) => limiter.allowSync(wide.key(name)), texts),
      eachAwaited((name) => flexible.consume(name), texts),
      eachAwaited((name) => express.increment(name), texts),
    ])
    express.shutdown()
    const compare = (form, times) => {
      const beside = `${ns(times)}, rate-limiter-flexible ${ns(flexibles)}`
      tell('P2', `${form}, ${what}, vs rate-limiter-flexible`, bound, ratio(flexibles, times), beside, 'higher')
      if (count === 1) return
      const besideExpress = `${ns(times)}, express-rate-limit ${ns(expresses)}`
      tell('P2', `${form}, ${what}, vs express-rate-limit`, 1, ratio(expresses, times), besideExpress, 'higher')
    }
    compare('allowSync', ours)
    compare('the same from texts, hashed in the call', hashed)
  }
}

async function refusals() {
  const [tight, key] = [new Rule('tight', '1/1d'), (rule) => (name) => rule.key(name)]
  const [spent, free] = [new Limiter({ capacity: 200_000 }), new Limiter({ capacity: 200_000 })]
  await compare('Limiter', [(one) => spent.allowSync(one), key(tight)], [(one) => free.allowSync(one), key(wide)])

  const [locked, open] = [1, 1024].map(
    (threshold) => new AttemptLimiter({ threshold, lockoutWindow: '1d', maxTrackedKeys: 200_000 }),
  )
  await compare('AttemptLimiter', [(name) => locked.attemptSync(name), text], [(name) => open.attemptSync(name), text])

  const [empty, full] = [1, WIDE].map((rate) => new TokenBucket({ rate, window: '1d', capacity: 200_000 }))
  await compare('TokenBucket', [(name) => empty.allowSync(name), text], [(name) => full.allowSync(name), text])
  const [closed, wideOpen] = [1, WIDE].map((limit) => new FixedWindow({ limit, window: '1d', maxKeys: 200_000 }))
  await compare(
    'FixedWindow',
    [(name) => closed.consumeSync(name).allowed, text],
    [(name) => wideOpen.consumeSync(name).allowed, text],
  )
}

/** A limiter whose keys are all spent with one that admits everything: each a call and how its keys are made. */
async function compare(what, ...sides) {
  for (const [call, make] of sides) for (const key of first(make, KEYS)) call(key)
  await against(what, ...sides.map(([call, make]) => each(call, drawn(make, KEYS, CALLS))))
}

async function against(what, spent, free) {
  const [denied, admitted] = await turns([spent, free])
  const beside = `denied ${ns(denied)}, admitted ${ns(admitted)}`
  tell('P10', `${what}, denied vs admitted, 100 k keys`, 1, ratio(denied, admitted), beside)
}

await crossing()
await peers()
await refusals()
