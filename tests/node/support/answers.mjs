/** Checks the vectors of what an application gets: HTTP answers, presets, advice. */
import assert from 'node:assert/strict'
import { http, Limiter, lint, Outcome, presets } from 'doorkeep'
import { parseList, serializeList } from 'structured-headers'
import { micros, milliseconds, only } from './corpus.mjs'
import { makeKeys, makeRule } from './steps.mjs'

const OUTCOMES = { denied: Outcome.Denied, allowed: Outcome.Allowed, allowed_last: Outcome.AllowedLastAttempt }

/** The attribute of a preset, by the name of its rule. */
export const attribute = (name) => name.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase())

function described(fields) {
  if (Object.hasOwn(fields, 'preset')) return presets[attribute(only(fields, ['preset']).preset)]
  const { name, ...rule } = fields
  return makeRule(name, rule)
}

export { checkHttp as http, checkLint as lint, checkPreset as presets, described }

function checkHttp(described) {
  const fields = ['name', 'rules', 'keys', 'decision', 'round_up_us', 'rate_limit', 'status', 'headers']
  const { rules, keys, decision, round_up_us, rate_limit, status, headers } = only(described, fields)
  const made = new Map(Object.entries(rules).map(([label, rule]) => [label, makeRule(label, rule)]))
  const answer = asDecision(decision)
  const roundUp = round_up_us === null ? undefined : milliseconds(round_up_us)
  const said = http.headers(answer, { keys: makeKeys({ rules: made }, keys), roundUp, rateLimit: rate_limit })
  assert.equal(http.status(answer), status)
  assert.deepEqual(said, headers)
  for (const name of ['RateLimit', 'RateLimit-Policy']) if (name in said) parsesBack(said[name])
}

function checkLint(fields) {
  const { rules, forgive, advice } = only(fields, ['name', 'rules', 'forgive', 'advice'])
  const made = rules.map(described)
  assert.deepEqual(lint(made, { forgive }), advice)
  const objects = forgive.map((name) => made.find((rule) => rule.name === name) ?? name)
  assert.deepEqual(lint(made, { forgive: objects }), advice)
}

function checkPreset(fields) {
  const {
    preset: name,
    policy,
    by,
    max_in,
    claim,
  } = only(fields, ['name', 'preset', 'policy', 'by', 'max_in', 'claim'])
  const preset = presets[attribute(name)]
  assert.deepEqual([preset.name, preset.policy, preset.by], [name, policy, by])
  for (const [span, most] of max_in) {
    assert.equal(preset.maxIn(milliseconds(span)), most)
    assert.equal(greedy(preset, span), most)
  }
  if (claim === null) return
  const { span_us, at_most } = only(claim, ['source', 'span_us', 'at_most'])
  assert.ok(preset.maxIn(milliseconds(span_us)) <= at_most)
}

function asDecision(fields) {
  const names = ['outcome', 'reason', 'rule', 'retry_after_us', 'remaining', 'reset_after_us']
  const { outcome, reason, rule, retry_after_us, remaining, reset_after_us } = only(fields, names)
  const retryAfterMs = retry_after_us === null ? null : milliseconds(retry_after_us)
  return {
    outcome: OUTCOMES[outcome],
    reason,
    rule,
    retryAfterMs,
    remaining,
    resetAfterMs: milliseconds(reset_after_us),
  }
}

/** A list of RFC 9651 that prints as it was sent: strings with different names, each with whole numbers only. */
function parsesBack(field) {
  const list = parseList(field)
  assert.equal(serializeList(list), field)
  assert.equal(new Set(list.map(([name]) => name)).size, list.length)
  for (const [name, parameters] of list) {
    assert.equal(typeof name, 'string')
    for (const [parameter, value] of parameters) {
      assert.ok(['q', 'w', 'r', 't'].includes(parameter), parameter)
      assert.ok(Number.isInteger(value) && value >= 0, `${parameter}=${value}`)
    }
  }
}

/**
 * How often an attacker passes on one key in a half-open span, by asking whenever the limiter announces that it is
 * time.
 */
function greedy(rule, span) {
  const limiter = new Limiter()
  const key = rule.key('victim')
  let admitted = 0
  for (let now = 0; now < span; ) {
    const { allowed, retryAfterMs } = limiter.decideSync(key, { now: milliseconds(now) })
    if (allowed) admitted += 1
    else now += micros(retryAfterMs)
  }
  return admitted
}
