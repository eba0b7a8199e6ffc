/** Runs one case of a limiter: its steps in order, through the public API, blocking or async, in memory or a store. */
import assert from 'node:assert/strict'
import { AttemptLimiter, FixedWindow, Limiter, Rule, StrikeRule, TokenBucket } from 'doorkeep'
import { micros, milliseconds, only, text } from './corpus.mjs'
import { fails, isError, outcomeName, sameDecision, sameStats } from './expectations.mjs'

/** Below this a table may evict within a case. */
const ROOMY = 50
const OF_TABLES = new Set(['size', 'stats'])
const CANCELLED = { nothing: 'nothing', givenBack: 'given_back', lifted: 'lifted' }

/** Makes the limiter of a case, over a store if there is one, and what runs its steps. */
const KINDS = {
  attempt_limiter(described, store) {
    only(described, ['kind', 'threshold', 'lockout_window_us', 'max_tracked_keys'])
    const { threshold, lockout_window_us, max_tracked_keys } = described
    const lockoutWindow = milliseconds(lockout_window_us)
    const limiter = new AttemptLimiter({
      threshold,
      lockoutWindow,
      maxTrackedKeys: max_tracked_keys,
      ...named('attempt-limiter', store),
    })
    return { limiter, operations: attemptLimiter }
  },
  limiter(described, store) {
    only(described, ['kind', 'capacity', 'rules'])
    const rules = Object.entries(described.rules).map(([label, rule]) => [label, makeRule(label, rule)])
    return { limiter: new Limiter({ capacity: described.capacity, store }), operations: limiter, rules: new Map(rules) }
  },
  token_bucket(described, store) {
    only(described, ['kind', 'rate', 'window_us', 'capacity'])
    const { rate, window_us, capacity } = described
    const made = { rate, window: milliseconds(window_us), capacity, ...named('token-bucket', store) }
    return { limiter: new TokenBucket(made), operations: tokenBucket }
  },
  fixed_window(described, store) {
    only(described, ['kind', 'limit', 'window_us', 'max_keys'])
    const { limit, window_us, max_keys } = described
    const window = milliseconds(window_us)
    const made = new FixedWindow({ limit, window, maxKeys: max_keys, ...named('fixed-window', store) })
    assert.deepEqual([made.limit, micros(made.windowMs)], [limit, window_us])
    return { limiter: made, operations: fixedWindow }
  },
}

/** Each operation: its arguments, its call, and how its result is compared. Called on the run of a case. */
const common = {
  size: { takes: [], call: (run) => run.limiter.size, plain: true, same: (size, expect) => same({ size }, expect) },
  stats: { takes: [], call: (run) => run.limiter.stats(), plain: true, same: sameStats },
}
const byKey = {
  ...common,
  reset: {
    takes: ['key'],
    call: (run, { key }) => run.ask('reset', text(key)),
    same: (reset, expect) => same({ reset }, expect),
  },
}

const retryAfter = {
  takes: ['key', 'now'],
  call: (run, { key, now }) => run.ask('retryAfterMs', text(key), at(now)),
  same: (wait, expect) => same({ retry_after_us: micros(wait) }, expect),
}

const attemptLimiter = {
  ...byKey,
  attempt: {
    takes: ['key', 'now'],
    optional: ['as'],
    call: (run, { key, now, as }) =>
      run.ask(as ? 'reserve' : run.outcomeAlone ? 'attempt' : 'decide', text(key), at(now)),
    same: (answer, expect, run, { as }) => {
      if (typeof answer === 'number') return assert.equal(outcomeName(answer), expect.outcome)
      if (!as) return sameDecision(answer, expect)
      const { outcome, decision, reservation } = answer
      assert.deepEqual([outcome, decision], [decision.outcome, reservation.decision])
      run.kept.set(as, reservation)
      return sameDecision(decision, expect)
    },
  },
  cancel: {
    takes: ['reservation', 'now'],
    call: (run, { reservation, now }) => run.ask('cancel', run.kept.get(reservation), at(now)),
    same: (cancelled, expect) => same({ cancelled: CANCELLED[cancelled] }, expect),
  },
  locked: {
    takes: ['key', 'now'],
    call: (run, { key, now }) => run.ask('locked', text(key), at(now)),
    same: (locked, expect) => same({ locked }, expect),
  },
  retry_after: retryAfter,
  refund: {
    takes: ['key', 'now'],
    call: (run, { key, now }) => run.ask('refund', text(key), at(now)),
    same: (nothing, expect) => same(nothing ?? {}, expect),
  },
}

const decided = (name) => ({
  takes: ['keys', 'cost', 'now'],
  call: (run, { keys, cost, now }) => run.ask(name, makeKeys(run, keys), { cost, ...at(now) }),
  same: (decision, expect) => sameDecision(decision, expect),
})
const settled = (settled, expect) => same({ settled }, expect)

const limiter = {
  ...common,
  allow: decided('decide'),
  peek: decided('peek'),
  attempt: {
    ...decided('attempt'),
    takes: ['keys', 'cost', 'now', 'as'],
    same: (attempt, expect, run, { as }) => {
      run.kept.set(as, attempt)
      assert.equal(attempt.allowed, attempt.decision.allowed)
      sameDecision(attempt.decision, expect)
    },
  },
  extend: {
    takes: ['attempt', 'keys', 'cost', 'now'],
    call: (run, { attempt, keys, cost, now }) =>
      run.askOf(run.kept.get(attempt), 'extend', makeKeys(run, keys), { cost, ...at(now) }),
    same: (decision, expect) => sameDecision(decision, expect),
  },
  success: {
    takes: ['attempt', 'forgive', 'give_back', 'forgive_address', 'now'],
    call: (run, { attempt, forgive, give_back, forgive_address, now }) =>
      run.askOf(run.kept.get(attempt), 'success', {
        forgive: forgive.map((name) => run.rules.get(name) ?? name),
        giveBack: give_back,
        forgiveAddress: forgive_address,
        ...at(now),
      }),
    same: settled,
  },
  cancel: {
    takes: ['attempt', 'now'],
    call: (run, { attempt, now }) => run.askOf(run.kept.get(attempt), 'cancel', at(now)),
    same: settled,
  },
  failure: {
    takes: ['attempt'],
    call: (run, { attempt }) => run.askOf(run.kept.get(attempt), 'failure'),
    same: settled,
  },
  // What an error named in `giveBackOn` does.
  release: {
    takes: ['attempt', 'now'],
    call: (run, { attempt, now }) => run.askOf(run.kept.get(attempt), 'release', at(now)),
    same: settled,
  },
  reset: {
    takes: ['keys'],
    call: (run, { keys }) => run.ask('reset', makeKeys(run, keys)),
    same: (reset, expect) => same({ reset }, expect),
  },
}

const allowed = (allowed, expect) => same({ allowed }, expect)
const tokenBucket = {
  ...byKey,
  allow: { takes: ['key', 'now'], call: (run, { key, now }) => run.ask('allow', text(key), at(now)), same: allowed },
  allow_n: {
    takes: ['key', 'n', 'now'],
    call: (run, { key, n, now }) => run.ask('allowN', text(key), n, at(now)),
    same: allowed,
  },
  retry_after: retryAfter,
  close: { takes: [], call: (run) => run.ask('close'), same: (nothing, expect) => same(nothing ?? {}, expect) },
}

const fixedWindow = {
  ...byKey,
  consume: {
    takes: ['key', 'now'],
    call: (run, { key, now }) => run.ask('consume', text(key), at(now)),
    same: (decision, expect) => sameDecision(decision, expect),
  },
  peek: {
    takes: ['key', 'now'],
    call: (run, { key, now }) => run.ask('peek', text(key), at(now)),
    same: (decision, expect) => sameDecision(decision, expect),
  },
}

/** Returns whether a case needs nothing that only a bounded table knows. */
export const isRoomy = ({ limiter }) => (limiter.capacity ?? limiter.max_tracked_keys ?? limiter.max_keys) >= ROOMY

/**
 * Runs the steps of a case in a mode: `{ sync, outcomeAlone, store }`. Tables are not inspected when there is a store.
 */
export async function runCase(described, mode) {
  only(described, ['name', 'limiter', 'steps'])
  const make = KINDS[described.limiter.kind]
  assert.ok(make, `unknown kind ${described.limiter.kind}`)
  const { operations, ...made } = make(described.limiter, mode.store)
  const askOf = (target, name, ...given) => target[mode.sync ? `${name}Sync` : name](...given)
  const run = { ...made, ...mode, kept: new Map(), askOf, ask: (...given) => askOf(made.limiter, ...given) }
  for (const [index, step] of described.steps.entries()) {
    if (mode.store && OF_TABLES.has(step.op)) continue
    try {
      await runStep(operations, run, step, mode)
    } catch (error) {
      error.message = `step ${index} (${step.op}): ${error.message}`
      throw error
    }
  }
}

async function runStep(operations, run, step, mode) {
  const operation = operations[step.op]
  assert.ok(operation, `unknown operation ${step.op}`)
  const { op, expect, ...given } = step
  only(given, operation.takes, operation.optional)
  if (isError(expect)) {
    // Keys are made before the call, and may be what fails.
    const keyless = async () => operation.call(run, given)
    return fails(mode.sync ? () => operation.call(run, given) : keyless, expect, mode)
  }
  const answer = operation.call(run, given)
  if (!mode.sync && !operation.plain) assert.ok(answer instanceof Promise)
  return operation.same(await answer, expect, run, given)
}

export function makeRule(label, described) {
  const [name] = label.split('#')
  const { secret_hex, ipv6_prefix, by, ...policy } = described
  const options = { secret: secret_hex && Buffer.from(secret_hex, 'hex'), ipv6Prefix: ipv6_prefix, by }
  if (Object.hasOwn(policy, 'rates')) return new Rule(name, only(policy, ['rates']).rates, options)
  const { threshold, lockout_window_us } = only(policy, ['threshold', 'lockout_window_us'])
  return new StrikeRule(name, { threshold, lockoutWindow: milliseconds(lockout_window_us), ...options })
}

export function makeKeys({ rules }, keys) {
  return keys.map((key) => {
    const rule = rules.get(key.rule)
    assert.ok(rule, `unknown rule ${key.rule}`)
    if (Object.hasOwn(key, 'address')) return rule.ipKey(text(only(key, ['rule', 'address']).address))
    return rule.key(...only(key, ['rule', 'parts']).parts.map(text))
  })
}

/** Returns the name that a limiter has in memory by default, where a store requires one. */
const named = (name, store) => (store ? { name, store } : {})
const at = (now) => ({ now: milliseconds(now) })
const same = (said, expect) => assert.deepEqual(said, expect)
