/**
 * The keys of a request, from what the rules say that they are keyed by.
 *
 * Knows no framework and hashes nothing itself. Invariant: a rule on the address never gets a key without an address, and
 * no rule gets a key of which a part is missing.
 */
import { ConfigError, InvalidKeyError } from '../errors.js'
import { network } from '../identity/network.js'
import { isPlain, ownValue } from '../options/options.js'
import type { Key } from './key.js'
import { KeyRule } from './rule.js'

/** What keys are made of: the address of the client, and a text for each other word of the rules. */
export interface KeyValues {
  /**
   * What {@link ClientIp.resolve} returned: null when the request has no address. To be left out only if no rule is on
   * the address; `undefined` counts as left out.
   */
  readonly address?: string | null | undefined
  /** In its canonical spelling: `account: canonicalEmail(body.email)`. Those that no rule names are ignored. */
  readonly [word: string]: string | null | undefined
}

const ADDRESS = 'address'
let hasWarned = false

/**
 * The key of each rule, from the words of its `by`, in the order of the rules, at least one.
 *
 * `address` in `by` is the network of the address, as wide as the rule says. Rules on the address are left out when there
 * is none, as behind a Unix socket; `process.emitWarning` says so once.
 *
 * @example
 * ```ts
 * keysFor([loginIp, loginAccountIp], { address: clientIp.resolve(peer, headers), account: canonicalEmail(email) })
 * ```
 * @throws {@link InvalidKeyError} when a word has no text, the address is none, or no rule is left: answer 400.
 * @throws {@link ConfigError} when a rule has no `by`, or is on the address and none was named, not even `null`.
 */
export function keysFor(rules: KeyRule | Iterable<KeyRule>, values: KeyValues): Key[] {
  if (!isPlain(values)) throw new ConfigError('values must be a plain object')
  const keys: Key[] = []
  const address = ownValue(values, ADDRESS) ?? undefined
  for (const rule of listed(rules)) {
    if (!(rule instanceof KeyRule)) throw new ConfigError('rules must be made by Rule or StrikeRule')
    const { name, by } = rule
    if (by.length === 0) throw new ConfigError(`a rule must say what it is keyed by, rule=\`${name}\``)
    if (by.includes(ADDRESS) && ownValue(values, ADDRESS) === undefined) {
      throw new ConfigError(`a rule keyed by the address needs an address, or none by name, rule=\`${name}\``)
    }
    if (address === undefined && by.includes(ADDRESS)) warnOfNoAddress()
    else if (address !== undefined && by.length === 1 && by[0] === ADDRESS) keys.push(rule.ipKey(address))
    else keys.push(rule.key(...(by.map((word) => part(rule, word, values)) as [string, ...string[]])))
  }
  if (keys.length === 0) {
    throw new InvalidKeyError('no key is left: the address is missing, and there is no rule without it')
  }
  return keys
}

function listed(rules: KeyRule | Iterable<KeyRule>): Iterable<unknown> {
  if (typeof rules !== 'object' || rules === null || !(Symbol.iterator in rules)) return [rules]
  return rules
}

function part(rule: KeyRule, word: string, values: KeyValues): string {
  const text = ownValue(values, word)
  // What is no text is no address either.
  if (word === ADDRESS) return network(text as string, rule.ipv6Prefix)
  if (typeof text !== 'string' || text === '') {
    const words = `rule=\`${rule.name}\`, word=\`${word}\``
    throw new InvalidKeyError(`a key needs a text for each word of its rule, ${words}`)
  }
  return text
}

/** Says once that there are requests to which rules on the address do not apply. */
export function warnOfNoAddress(): void {
  if (hasWarned) return
  hasWarned = true
  const text = 'a request has no address: rules on the address are left out for such requests, the others stand'
  process.emitWarning(text, { type: 'DoorkeepWarning', code: 'DOORKEEP_NO_ADDRESS' })
}
