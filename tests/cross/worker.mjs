/**
 * The Node process of the cross tests: answers one JSON line for each JSON line that it reads, until there are no more.
 *
 * Knows no expectation. README.md has the protocol, which every language's worker speaks.
 */
import { createInterface } from 'node:readline'
import { AttemptLimiter, FixedWindow, Limiter, Outcome, RedisStore, Rule, StrikeRule, TokenBucket } from 'doorkeep'

const OUTCOMES = {
  [Outcome.Denied]: 'denied',
  [Outcome.Allowed]: 'allowed',
  [Outcome.AllowedLastAttempt]: 'allowed_last',
}

let limiter, strikes, bucket, window
const rules = new Map()
// Attempts and reservations that wait to be settled.
const held = new Map()

const operations = {
  async open({ url, prefix, clock, rules: described, ...single }) {
    const store = new RedisStore(url, { prefix, timeout: '5s', onError: 'closed', clock })
    limiter = new Limiter({ store })
    for (const [name, options] of Object.entries(described)) rules.set(name, ruleOf(name, options))
    if (single.strikes) strikes = new AttemptLimiter({ store, ...camel(single.strikes) })
    if (single.bucket) bucket = new TokenBucket({ store, ...camel(single.bucket) })
    if (single.window) window = new FixedWindow({ store, ...camel(single.window) })
  },
  digest: async ({ key }) => keyOf(key).digest,
  allow: async ({ keys, now }) => answer(await limiter.decide(keys.map(keyOf), at(now))),
  async attempt({ keys, hold, now }) {
    const attempt = await limiter.attempt(keys.map(keyOf), at(now))
    held.set(hold, attempt)
    return answer(attempt.decision)
  },
  success: ({ held: name, forgive, give_back: giveBack, now }) =>
    held.get(name).success({ forgive, giveBack, ...at(now) }),
  cancel: ({ held: name, now }) => held.get(name).cancel(at(now)),
  strike: async ({ key, now }) => answer(await strikes.decide(key, at(now))),
  async reserve({ key, hold, now }) {
    const { reservation, decision } = await strikes.reserve(key, at(now))
    held.set(hold, reservation)
    return answer(decision)
  },
  unreserve: async ({ held: name, now }) => snake(await strikes.cancel(held.get(name), at(now))),
  locked: ({ key, now }) => strikes.locked(key, at(now)),
  take: ({ key, n = 1, now }) => bucket.allowN(key, n, at(now)),
  consume: async ({ key, now }) => answer(await window.consume(key, at(now))),
  async many({ call, times }) {
    const counts = {}
    for (const said of await Promise.all(Array.from({ length: times }, () => perform(call)))) {
      counts[nameOf(said)] = (counts[nameOf(said)] ?? 0) + 1
    }
    return counts
  },
  async hammer({ rule, times }) {
    for (let wave = 0; ; wave += 1) {
      const calls = []
      for (let n = 0; n < times; n += 1) {
        const key = `${wave}-${n}`
        calls.push(strikes.decide(key), bucket.allow(key), window.consume(key))
        calls.push(limiter.decide(keyOf({ rule, parts: [key] })))
      }
      await Promise.all(calls)
    }
  },
}

const perform = ({ op, ...given }) => operations[op](given)

function ruleOf(name, { rates, secret_hex: secret, ...options }) {
  const all = { ...camel(options), ...(secret && { secret: Buffer.from(secret, 'hex') }) }
  return rates === undefined ? new StrikeRule(name, all) : new Rule(name, rates, all)
}

function keyOf({ rule, parts, address }) {
  const made = rules.get(rule)
  return address === undefined ? made.key(...parts) : made.ipKey(address)
}

/** An explicit moment, from microseconds. */
function at(now) {
  return now === undefined ? undefined : { now: now / 1000 }
}

function answer(decision) {
  return {
    outcome: OUTCOMES[decision.outcome],
    reason: decision.reason,
    rule: decision.rule,
    retry_after: micros(decision.retryAfterMs),
    remaining: decision.remaining,
    reset_after: micros(decision.resetAfterMs),
    engaged: decision.engaged,
    degraded: decision.degraded,
  }
}

const micros = (milliseconds) => (milliseconds === null ? null : Math.round(milliseconds * 1000))

/** The word under which `many` counts an answer. */
function nameOf(said) {
  if (typeof said === 'boolean') return said ? 'allowed' : 'denied'
  return said.reason === 'unavailable' ? 'unavailable' : said.outcome
}

const snake = (text) => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camel = (options) =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()), value]),
  )

for await (const line of createInterface({ input: process.stdin })) {
  let said
  try {
    said = { said: (await perform(JSON.parse(line))) ?? null }
  } catch (error) {
    said = { error: `${error.name}: ${error.message}` }
  }
  process.stdout.write(`${JSON.stringify(said)}\n`)
}
