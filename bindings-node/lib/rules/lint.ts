/** Advice on the rules of one endpoint. The core gives it. */
import { ConfigError } from '../errors.js'
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { known } from '../options/options.js'
import { type KeyRule, namesOf, numberOf } from './rule.js'

/** What {@link lint} can be given. */
export interface LintOptions {
  /** The rules that a success forgives, as objects or as names. */
  readonly forgive?: readonly (KeyRule | string)[] | undefined
}

const OPTIONS: ReadonlySet<string> = new Set(['forgive'])

/**
 * Advice on the rules that one endpoint asks together, in the order in which their keys are passed: what an attacker
 * would do about them. It knows what a rule is keyed by from the rule's `by`, and concludes nothing about a set in which
 * a rule has none.
 *
 * @returns What is wrong with which rule, and what to do. Empty when there is nothing to say, which does not mean that
 * the numbers suit the endpoint.
 * @throws {@link ConfigError} when something among `rules` is none.
 */
export function lint(rules: readonly KeyRule[], options?: LintOptions): string[] {
  const { forgive } = known(options, OPTIONS)
  if (!Array.isArray(rules)) throw new ConfigError('rules must be an array')
  return [...unwrap(native.lint(rules.map(numberOf), namesOf('forgive', forgive)))]
}
