/** Advice on the rules of one endpoint, from the core. */
import { ConfigError } from '../errors.js'
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { known } from '../options/options.js'
import { type KeyRule, namesOf, numberOf } from './rule.js'

/** The options of {@link lint}. */
export interface LintOptions {
  /** The rules that a success forgives, as objects or names. */
  readonly forgive?: readonly (KeyRule | string)[] | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['forgive'])

/**
 * Returns advice on the rules of one endpoint, in the order in which their keys are passed: what an attacker would do
 * about them. It uses `by` of the rules, and concludes nothing about a set in which a rule has none.
 *
 * @returns What is wrong with which rule, and what to do. Empty when there is nothing to report, which does not mean
 * that the numbers suit the endpoint.
 * @throws {@link ConfigError} when a member of `rules` is not a rule.
 */
export function lint(rules: readonly KeyRule[], options?: LintOptions): string[] {
  const { forgive } = known(options, OPTIONS)
  if (!Array.isArray(rules)) throw new ConfigError('rules must be an array')
  return [...unwrap(native.lint(rules.map(numberOf), namesOf('forgive', forgive)))]
}
