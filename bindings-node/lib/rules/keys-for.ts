/**
 * The keys of a request, from what its rules are keyed by. The core makes them and has all rules about them.
 *
 * Knows no framework.
 */
import { ConfigError } from '../errors.js'
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { KEY_WORDS, KEYS, numbers, Slot } from '../native/slots.js'
import { isPlain, ownValue } from '../options/options.js'
import { Key } from './key.js'
import { KeyRule, numberOf } from './rule.js'

/** What keys are made of: the address of the client, and a string for each other field in `by` of the rules. */
export interface KeyValues {
  /**
   * The result of {@link ClientIp.resolve}: null when the request has no address. May be left out only if no rule is
   * keyed by the address; `undefined` counts as left out.
   */
  readonly address?: string | null | undefined
  /** In canonical spelling: `account: canonicalEmail(body.email)`. Fields that no rule names are ignored. */
  readonly [word: string]: string | null | undefined
}

let hasWarned = false

/**
 * Returns the key of each rule, from the fields of its `by`, in the order of the rules; at least one.
 *
 * `address` in `by` becomes the network of the address, as wide as the rule says. Rules on the address are left out
 * when there is no address, as behind a Unix socket; `process.emitWarning` warns of that once.
 *
 * @example
 * ```ts
 * keysFor([loginIp, loginAccountIp], { address: clientIp.resolve(peer, headers), account: canonicalEmail(email) })
 * ```
 * @throws {@link InvalidKeyError} when a field is missing, empty or not a string, the address is invalid, or no rule is
 * left: answer 400.
 * @throws {@link ConfigError} when a rule has no `by`, or is keyed by the address and `address` was left out.
 */
export function keysFor(rules: KeyRule | Iterable<KeyRule>, values: KeyValues): Key[] {
  if (!isPlain(values)) throw new ConfigError('values must be a plain object')
  const list = listed(rules)
  const ruleNumbers = list.map(numberOf)
  const words: string[] = []
  for (const { by } of list) for (const word of by) if (!words.includes(word)) words.push(word)
  const texts = words.map((word) => ownValue(values, word))
  const keys: Key[] = []
  let all: number
  do {
    const warning = unwrap(native.keysFor(ruleNumbers, ownValue(values, 'address'), words, texts, keys.length))
    all = numbers[Slot.Keys]
    // One turn in nearly all cases: the slots have room for as many keys as a limiter accepts.
    for (let index = 0; index < KEYS && keys.length < all; index += 1) keys.push(new Key(index * KEY_WORDS))
    if (warning !== undefined) warnOnce(warning)
  } while (keys.length < all)
  return keys
}

function listed(rules: KeyRule | Iterable<KeyRule>): readonly KeyRule[] {
  const isList = typeof rules === 'object' && rules !== null && Symbol.iterator in rules
  const list: readonly unknown[] = isList ? [...rules] : [rules]
  if (list.every((rule) => rule instanceof KeyRule)) return list
  throw new ConfigError('rules must be made by Rule or StrikeRule')
}

/** Warns once that rules on the address do not apply to some requests. */
function warnOnce(warning: string): void {
  if (hasWarned) return
  hasWarned = true
  process.emitWarning(warning, { type: 'DoorkeepWarning', code: 'DOORKEEP_NO_ADDRESS' })
}
