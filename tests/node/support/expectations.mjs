/** Compares results of the package with what a vector expects. */
import assert from 'node:assert/strict'
import { ConfigError, InvalidKeyError, Outcome } from 'doorkeep'
import { micros, only } from './corpus.mjs'

const OUTCOMES = new Map([
  [Outcome.Denied, 'denied'],
  [Outcome.Allowed, 'allowed'],
  [Outcome.AllowedLastAttempt, 'allowed_last'],
])
const ERRORS = { config: [ConfigError, 'DOORKEEP_CONFIG'], invalid_key: [InvalidKeyError, 'DOORKEEP_INVALID_KEY'] }
const DECISION = ['outcome', 'reason', 'rule', 'retry_after_us', 'remaining', 'reset_after_us', 'engaged']

export const outcomeName = (outcome) => OUTCOMES.get(outcome)

/** Checks every field of a decision, including those that follow from others. */
export function sameDecision(decision, expect) {
  only(expect, DECISION)
  const said = {
    outcome: outcomeName(decision.outcome),
    reason: decision.reason,
    rule: decision.rule,
    retry_after_us: micros(decision.retryAfterMs),
    remaining: decision.remaining,
    reset_after_us: micros(decision.resetAfterMs),
    engaged: [...decision.engaged],
  }
  assert.deepEqual(said, expect)
  assert.equal(decision.allowed, expect.outcome !== 'denied')
  assert.equal(decision.degraded, false)
  const wait = expect.retry_after_us
  assert.equal(decision.retryAfterSeconds, wait === null ? null : Math.ceil(wait / 1e6))
}

/** Checks the counters; those that are zero are left out of the vectors. */
export function sameStats(stats, expect) {
  only(expect, ['allowed', 'denied', 'evicted', 'tracked_keys'])
  const { allowed, denied, storeFailed, evicted, trackedKeys, ...rest } = stats
  assert.deepEqual({ allowed, denied, evicted, tracked_keys: trackedKeys }, expect)
  assert.deepEqual(storeFailed, {})
  assert.deepEqual(rest, {})
}

/** Returns whether a vector expects an error. */
export const isError = (expect) => Object.hasOwn(expect, 'error')

/** Checks that `call` fails as expected: thrown immediately, or as a rejection and never thrown. */
export async function fails(call, { error, ...how }, { sync }) {
  const [Kind, code] = ERRORS[error]
  const matches = (thrown) => {
    assert.ok(thrown instanceof Kind)
    assert.equal(thrown.code, code)
    if (Object.hasOwn(how, 'message_prefix'))
      assert.ok(thrown.message.startsWith(only(how, ['message_prefix']).message_prefix))
    else assert.equal(thrown.message, only(how, ['message']).message)
    return true
  }
  if (sync) assert.throws(call, matches)
  else await assert.rejects(call(), matches)
}
