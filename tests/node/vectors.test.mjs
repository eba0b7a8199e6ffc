/** Every vector, through the public names of the package: blocking, async, and the outcome alone. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  AttemptLimiter,
  ClientIp,
  canonicalEmail,
  canonicalUsername,
  FixedWindow,
  http,
  keysFor,
  Limiter,
  network,
  Rates,
  Rule,
  StrikeRule,
  TokenBucket,
} from 'doorkeep'
import * as answers from './support/answers.mjs'
import {
  cases,
  duration,
  FUNCTION_FILES,
  files,
  LIMITER_FILES,
  milliseconds,
  only,
  raw,
  text,
} from './support/corpus.mjs'
import { fails, isError } from './support/expectations.mjs'
import { runCase } from './support/steps.mjs'

const SYNC = { sync: true }
const present = files()

it('no file of vectors is left out', () => {
  for (const file of present) assert.ok(LIMITER_FILES.includes(file) || FUNCTION_FILES.includes(file), file)
  assert.ok(present.includes('strikes') && present.includes('limiter'))
})

for (const file of LIMITER_FILES.filter((file) => present.includes(file))) {
  describe(file, () => {
    for (const described of cases(file)) {
      it(`${described.name} (blocking)`, () => runCase(described, SYNC))
      it(`${described.name} (async)`, () => runCase(described, { sync: false }))
      if (described.limiter.kind === 'attempt_limiter') {
        it(`${described.name} (the outcome alone)`, () => runCase(described, { sync: true, outcomeAlone: true }))
      }
    }
  })
}

/** Checks a case of a pure function: its result, or how it fails. */
function check(described, call, takes, answers) {
  const { name, ...fields } = described
  if (isError(fields)) {
    const { error, message, message_prefix, ...given } = fields
    only(given, takes)
    return fails(call, message === undefined ? { error, message_prefix } : { error, message }, SYNC)
  }
  only(fields, takes.concat(Object.keys(answers)))
  const answer = call()
  for (const [field, of] of Object.entries(answers)) assert.deepEqual(of(answer), fields[field])
}

const functions = {
  keys: (described) => {
    const { parts, secret_hex, ...rest } = described
    const secret = secret_hex ? Buffer.from(secret_hex, 'hex') : undefined
    const rule = new Rule('any', '5/1m', { secret })
    return check({ parts, ...rest }, () => rule.key(...parts.map(text)), ['parts'], { digest: (key) => key.digest })
  },
  network: (described) =>
    check(described, () => network(text(described.address), described.ipv6_prefix), ['address', 'ipv6_prefix'], {
      network: (answer) => answer,
    }),
  'client-ip': (described) => {
    const { trusted_proxies, header, peer } = described
    const resolve = (headersOf) => {
      const clientIp = new ClientIp({ trustedProxies: trusted_proxies, header })
      return clientIp.resolve(peer === null ? null : text(peer), headersOf(described.lines.map(text)))
    }
    const call = () => resolve((lines) => lines.map((line) => [header.toUpperCase(), line]))
    const answers = isError(described)
      ? {}
      : {
          address: (answer) =>
            assert.equal(
              resolve((lines) => ({ host: 'a.b', [header]: lines })),
              answer,
            ) ?? answer,
        }
    return check(described, call, ['trusted_proxies', 'header', 'peer', 'lines'], answers)
  },
  email: (described) => {
    const { drop_tags, drop_gmail_dots, ...rest } = described
    const options = { dropTags: drop_tags, dropGmailDots: drop_gmail_dots }
    return check(rest, () => canonicalEmail(text(rest.text), options), ['text'], {
      email: (answer) => canonicalEmail(answer, options),
    })
  },
  username: (described) =>
    check(described, () => canonicalUsername(text(described.text)), ['text'], {
      username: (answer) => canonicalUsername(answer),
    }),
  rates: (described) =>
    check(described, () => new Rates(text(described.text)), ['text'], {
      canonical: String,
      max_in: (rates) => described.max_in.map(([span]) => [span, rates.maxIn(milliseconds(span))]),
    }),
  config: (described) => check(described, () => make(described.make), ['make'], {}),
  'keys-for': (described) => {
    const rules = described.rules.map(answers.described)
    const words = Object.fromEntries(Object.entries(described.words).map(([word, value]) => [word, text(value)]))
    const address = Object.hasOwn(described, 'address') ? { address: described.address } : {}
    // A key does not show here whether it is an address.
    const keys = described.keys?.map(({ rule, digest }) => ({ rule, digest }))
    const expected = keys === undefined ? described : { ...described, keys }
    const takes = ['rules', 'words', ...Object.keys(address)]
    return check(expected, () => keysFor(rules, { ...address, ...words }), takes, {
      keys: (made) => made.map((key) => key.toJSON()),
      leaves_out: (made) => made.length < rules.length,
    })
  },
  http: answers.http,
  lint: answers.lint,
  presets: answers.presets,
}

for (const file of FUNCTION_FILES.filter((file) => present.includes(file))) {
  describe(file, () => {
    for (const described of cases(file)) it(described.name, () => functions[file](described))
  })
}

/** Makes the object of a case of config.json, from values of any type. */
function make({ kind, ...given }) {
  switch (kind) {
    case 'attempt_limiter': {
      const { threshold, lockout_window, max_tracked_keys } = only(given, [
        'threshold',
        'lockout_window',
        'max_tracked_keys',
      ])
      return new AttemptLimiter({
        threshold: raw(threshold),
        lockoutWindow: duration(lockout_window),
        maxTrackedKeys: raw(max_tracked_keys),
      })
    }
    case 'limiter':
      return new Limiter({ capacity: raw(only(given, ['capacity']).capacity) })
    case 'token_bucket': {
      const { rate, window, capacity } = only(given, ['rate', 'window', 'capacity'])
      return new TokenBucket({ rate: raw(rate), window: duration(window), capacity: raw(capacity) })
    }
    case 'fixed_window': {
      const { limit, window, max_keys } = only(given, ['limit', 'window', 'max_keys'])
      return new FixedWindow({ limit: raw(limit), window: duration(window), maxKeys: raw(max_keys) })
    }
    case 'rule': {
      const { name, rates } = only(given, ['name', 'rates'], ['ipv6_prefix', 'secret_hex', 'by'])
      return new Rule(text(name), raw(rates), ruleOptions(given))
    }
    case 'strike_rule': {
      const { name, threshold, lockout_window } = only(
        given,
        ['name', 'threshold', 'lockout_window'],
        ['ipv6_prefix', 'secret_hex', 'by'],
      )
      const strikes = { threshold: raw(threshold), lockoutWindow: duration(lockout_window) }
      return new StrikeRule(text(name), { ...strikes, ...ruleOptions(given) })
    }
    case 'cost':
      return new Limiter().decideSync(new Rule('any', '5/1m').key('a'), { cost: raw(only(given, ['value']).value) })
    case 'round_up':
      return http.checkRoundUp(duration(only(given, ['value']).value))
    case 'n':
      return new TokenBucket().allowNSync('a', raw(only(given, ['value']).value))
    default:
      return assert.fail(`unknown kind ${kind}`)
  }
}

function ruleOptions({ ipv6_prefix, secret_hex, by }) {
  return {
    ...(ipv6_prefix === undefined ? {} : { ipv6Prefix: raw(ipv6_prefix) }),
    ...(secret_hex === undefined ? {} : { secret: Buffer.from(secret_hex, 'hex') }),
    ...(by === undefined ? {} : { by }),
  }
}
