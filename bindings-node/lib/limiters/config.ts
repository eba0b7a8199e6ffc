/** A limiter and its rules as plain data, such as a part of a configuration file. */
import { ConfigError } from '../errors.js'
import type { Clock } from '../options/call.js'
import { type Duration, isPlain, known } from '../options/options.js'
import { Rule, type RuleOptions, StrikeRule, type StrikeRuleOptions } from '../rules/rule.js'
import { type OnError, RedisStore, type RedisStoreOptions } from '../store.js'

/** A rule as plain data: its rates, its rates with options, or strikes. */
export type RuleConfig = string | (RuleOptions & { readonly rates: string }) | StrikeRuleOptions

/** The argument of {@link Limiter.fromConfig}. */
export interface LimiterConfig {
  /**
   * The URL of a {@link RedisStore}, which the limiter makes and keeps as its `store`. Without it the counts are in
   * memory.
   */
  readonly redis?: string | undefined
  /** What every key of the store begins with. Has no effect without `redis`, like the options below. */
  readonly prefix?: string | undefined
  /** What to do when the store cannot be reached. */
  readonly onError?: OnError | undefined
  /** The bound on every call to the store. */
  readonly timeout?: Duration | undefined
  /** Called with each event of the store. */
  readonly onEvent?: RedisStoreOptions['onEvent']
  /** How many windows (one per key and rate) are kept, and how many keys of each strike rule. */
  readonly capacity?: number | undefined
  /** Where the time comes from. */
  readonly clock?: Clock | undefined
  /** The rules by name. */
  readonly rules?: Readonly<Record<string, RuleConfig>> | undefined
}

const CONFIG: ReadonlySet<string> = new Set([
  'redis',
  'prefix',
  'onError',
  'timeout',
  'onEvent',
  'capacity',
  'clock',
  'rules',
])
const RATES: ReadonlySet<string> = new Set(['rates', 'ipv6Prefix', 'secret', 'by'])

/** Reads the options of the limiter and its rules. */
export function readConfig(config: LimiterConfig) {
  // Undefined is a variable that was not set: a limiter without rules would be taken for a guarded one.
  if (config === undefined || config === null) throw new ConfigError('options must be a plain object')
  const { redis, prefix, timeout, onEvent, onError, capacity, clock, rules } = known(config, CONFIG)
  // A Map or a list has no rules by name, so it would make none.
  if (rules !== undefined && !isPlain(rules)) throw new ConfigError('rules must be a plain object')
  // Without a prototype, so that a name finds only rules.
  const made: Record<string, Rule | StrikeRule> = Object.create(null)
  for (const [name, rule] of Object.entries(rules ?? {})) made[name] = readRule(name, rule)
  const store =
    redis === undefined || redis === null ? undefined : new RedisStore(redis, { prefix, timeout, onError, onEvent })
  return { store, onError, capacity, clock, rules: Object.freeze(made) }
}

function readRule(name: string, rule: RuleConfig): Rule | StrikeRule {
  if (typeof rule !== 'object' || rule === null) return new Rule(name, rule)
  if (!isByRates(rule)) return new StrikeRule(name, rule)
  const { rates, ...options } = known(rule, RATES)
  return new Rule(name, rates, options)
}

function isByRates(rule: Exclude<RuleConfig, string>): rule is Exclude<RuleConfig, string | StrikeRuleOptions> {
  return !Object.hasOwn(rule, 'threshold') && !Object.hasOwn(rule, 'lockoutWindow')
}
