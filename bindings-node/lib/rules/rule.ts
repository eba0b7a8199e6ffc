/** Rules: how the keys that they make are counted. The core builds and checks them. */
import { ConfigError } from '../errors.js'
import { type NativeRule, native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { ruleNames } from '../native/slots.js'
import { type Duration, known } from '../options/options.js'
import { Key } from './key.js'
import { type Rate, Rates } from './rate.js'

/** The options of every rule. */
export interface RuleOptions {
  /** How many leading bits of an IPv6 address `ipKey` counts together: 32 to 128, by default 64. */
  readonly ipv6Prefix?: number | undefined
  /** At least 16 bytes: makes digests that cannot be recomputed without it. A string is used as its UTF-8 bytes. */
  readonly secret?: Uint8Array | string | undefined
  /** What its keys are made of, such as `account`, `address`. `['address']` alone means that all keys are addresses. */
  readonly by?: readonly string[] | undefined
}

/** The options of a {@link StrikeRule}. */
export interface StrikeRuleOptions extends RuleOptions {
  /** The attempt that engages the lockout: 1 to 1024. */
  readonly threshold: number
  /** How long the lockout lasts after that attempt, and how long an idle key keeps its strikes. */
  readonly lockoutWindow: Duration
}

const RULE: ReadonlySet<string> = new Set(['ipv6Prefix', 'secret', 'by'])
const STRIKES: ReadonlySet<string> = new Set([...RULE, 'threshold', 'lockoutWindow'])

let numbered: (rule: unknown) => number | undefined

/** The base of {@link Rule} and {@link StrikeRule}. Equal rules are one rule, which is kept while the program runs. */
export abstract class KeyRule {
  /** Its name in decisions and stats. */
  readonly name: string
  /** What it counts by, in the canonical text that is part of its keys' names. */
  readonly policy: string
  /** How many leading bits of an IPv6 address `ipKey` counts together. */
  readonly ipv6Prefix: number
  /** What its keys are made of. */
  readonly by: readonly string[]
  readonly #number: number

  /** @internal */
  constructor(made: NativeRule, by: readonly string[]) {
    this.name = made.name
    this.policy = made.policy
    this.ipv6Prefix = made.ipv6Prefix
    this.by = Object.freeze([...by])
    this.#number = made.number
    ruleNames[made.number] = made.name
  }

  static {
    numbered = (rule) => (typeof rule === 'object' && rule !== null && #number in rule ? rule.#number : undefined)
  }

  /**
   * Makes the key of one or more parts, such as an account and the network of an address. Hashed immediately.
   *
   * @throws {@link InvalidKeyError} when there is no part, or one is empty or not a string.
   */
  key(...parts: readonly [string, ...string[]]): Key {
    const [first] = parts
    const single = parts.length === 1 && typeof first === 'string'
    unwrap(single ? native.key(this.#number, first) : native.keyOfParts(this.#number, parts))
    return new Key()
  }

  /**
   * Makes the key of an address: IPv4 whole, IPv6 by its prefix. The same as `key(network(address, ipv6Prefix))`.
   *
   * @throws {@link InvalidKeyError} when it is not an IPv4 or IPv6 address.
   */
  ipKey(address: string): Key {
    unwrap(native.ipKey(this.#number, address))
    return new Key()
  }

  /** Returns the most attempts that can pass on one key in any half-open span of this length, from a fresh start. */
  maxIn(span: Duration): number {
    return unwrap(native.ruleMaxIn(this.#number, span))
  }
}

/**
 * A rule by rates.
 *
 * @example
 * ```ts
 * const loginIp = new Rule('login-ip', '20/1m,200/1h', { ipv6Prefix: 64 })
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound. Names match `[a-z0-9-]{1,32}`.
 */
export class Rule extends KeyRule {
  /** Its rates. */
  readonly rates: Rates

  constructor(name: string, rates: string | Rates | readonly Rate[], options?: RuleOptions) {
    const { ipv6Prefix, secret, by } = known(options, RULE)
    const text = Array.isArray(rates) ? String(new Rates(rates)) : rates instanceof Rates ? String(rates) : rates
    const words = list(by)
    const made = unwrap(native.rule(name, text, ipv6Prefix, secret, words))
    super(made, words)
    this.rates = new Rates(made.rates)
  }
}

/**
 * A rule by strikes: the attempt that reaches the threshold is the last one, then the key is locked for the lockout
 * window. Denied attempts do not extend it. Attempts that stay just under one window apart accumulate forever.
 *
 * @example
 * ```ts
 * const accountIp = new StrikeRule('login-account-ip', { threshold: 5, lockoutWindow: '15m' })
 * ```
 * @throws {@link ConfigError} that names the parameter and the bound. Names match `[a-z0-9-]{1,32}`.
 */
export class StrikeRule extends KeyRule {
  /** The attempt that engages the lockout. */
  readonly threshold: number
  /** The lockout window in milliseconds. */
  readonly lockoutWindowMs: number

  constructor(name: string, options: StrikeRuleOptions) {
    const { threshold, lockoutWindow, ipv6Prefix, secret, by } = known(options, STRIKES)
    const words = list(by)
    const made = unwrap(native.strikeRule(name, [threshold, lockoutWindow], ipv6Prefix, secret, words))
    super(made, words)
    this.threshold = made.threshold
    this.lockoutWindowMs = made.lockoutWindowMicros / 1000
  }
}

/**
 * Returns the names of the rules in a list that was passed as `name`, of rules or their names; a single one may be
 * passed without a list.
 *
 * @throws {@link ConfigError} when one is neither: a rule that counted nothing is skipped, which must not hide a
 * mistake.
 */
export function namesOf(name: string, rules: unknown): readonly string[] {
  const list: readonly unknown[] = rules === undefined || rules === null ? [] : Array.isArray(rules) ? rules : [rules]
  return list.map((rule) => {
    if (rule instanceof KeyRule) return rule.name
    if (typeof rule !== 'string') throw new ConfigError(`${name} must list rules or their names`)
    return rule
  })
}

/** Returns the number under which the native module keeps a rule. */
export function numberOf(rule: KeyRule): number {
  const number = numbered(rule)
  if (number === undefined) throw new ConfigError('a rule must be a Rule or a StrikeRule')
  return number
}

function list(by: readonly string[] | undefined): readonly string[] {
  return by === undefined || by === null ? [] : Array.isArray(by) ? by : [by as unknown as string]
}
