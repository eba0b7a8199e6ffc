/** The lab in Node: the same runs as in every language, and errors that name the field. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError } from 'doorkeep'
import { bound, bounds, simulate } from 'doorkeep/lab'
import { cases, only } from './support/corpus.mjs'

for (const { name, scenario, outcome } of cases('lab').map((item) => only(item, ['name', 'scenario', 'outcome']))) {
  test(`lab: ${name}`, () => {
    const run = simulate(scenario)
    for (const [table, columns] of Object.entries(run)) {
      for (const [column, values] of Object.entries(columns)) {
        assert.ok(values instanceof Float64Array || column === 'kind')
        const plain = Array.from(values, (value) => (Number.isNaN(value) ? null : value))
        assert.deepEqual(plain, outcome[table][column], `${table}.${column}`)
      }
      assert.deepEqual(Object.keys(columns).sort(), Object.keys(outcome[table]).sort())
    }
    assert.deepEqual(Object.keys(run).sort(), Object.keys(outcome).sort())
  })
}

test('an object is the scenario that its fields say', () => {
  const fields = { policy: { rules: ['preset:vault'] }, attackers: [{ kind: 'vertical' }] }
  const { attackers } = simulate(fields)
  assert.deepEqual(attackers, simulate(JSON.stringify(fields)).attackers)
  assert.equal(attackers.guesses[0], 480)
  assert.deepEqual(attackers.kind, ['vertical'])
})

test('a scenario that cannot be run is refused with its field, and its line where there are lines', () => {
  const error = (scenario) => {
    try {
      simulate(scenario)
    } catch (caught) {
      assert.ok(caught instanceof ConfigError)
      return caught.message
    }
    return assert.fail('nothing was thrown')
  }
  const policy = { rules: ['preset:vault'] }
  assert.match(error({ policy, attackers: [{ kind: 'wizard' }] }), /^scenario attackers\[0\]\.kind: unknown attacker/)
  assert.match(
    error('[policy]\nrules = ["preset:vault"]\n[[attackers]]\nkind = "vertical"\nrate = -1'),
    /^scenario line 5, attackers\[0\]\.rate: /,
  )
  assert.match(error({ attackers: [] }), /^scenario policy: is required/)
  assert.throws(() => simulate(undefined), ConfigError)
  assert.throws(() => simulate(5), ConfigError)
})

test('bounds of a policy are columns, and a closed form is a number', () => {
  const { span, admitted, unnoticed } = bounds('s5/15m')
  const day = span.indexOf('24h')
  assert.deepEqual([admitted[day], unnoticed[day]], [480, 384])
  assert.equal(bound('max_in', { policy: '5/1m', span: '24h' }), 7204)
  assert.equal(bound('max_in', { policy: '5/1m', span: 86_400_000 }), 7204)
  assert.equal(bound('admitted_at', { rates: '5/1m', guess: 6 }), 12_000)
  assert.equal(bound('honest_denial', { burst: 20, load: 1.5 }).toFixed(6), '0.333333')
  assert.throws(() => bound('wizard', {}), /unknown bound, use max_in/)
  assert.throws(() => bound('max_in', { policy: '5/1m' }), /span is required/)
  assert.throws(() => bounds(5), ConfigError)
})
