/**
 * What is counted: one value under one rule. Only its hash exists here.
 *
 * Invariant: a rule makes a key from what the native module hashed; no field contains the value.
 */
import { ConfigError } from '../errors.js'
import { KEY_WORDS, KEYS, numbers, ruleNames, Slot, words } from '../native/slots.js'

/** Writes the words of `key` at an offset of the words. */
let write: (key: Key, offset: number) => void
let isKey: (value: unknown) => value is Key

/** A value under a rule, hashed when it is made, by `rule.key(...)` or `rule.ipKey(...)`. */
export class Key {
  /** The name of the rule. */
  readonly rule: string
  readonly #rule: number
  readonly #first: number
  readonly #second: number
  readonly #third: number
  readonly #fourth: number
  readonly #flags: number

  /**
   * Reads a key that the latest native call wrote, at an offset of the words.
   *
   * @internal
   */
  constructor(offset = 0) {
    this.#rule = words[offset]
    this.#first = words[offset + 1]
    this.#second = words[offset + 2]
    this.#third = words[offset + 3]
    this.#fourth = words[offset + 4]
    this.#flags = words[offset + 5]
    this.rule = ruleNames[this.#rule]
  }

  /** The first 16 bytes of the hash as lower-case hex, the same in every language. */
  get digest(): string {
    return [this.#first, this.#second, this.#third, this.#fourth]
      .map((word) => word.toString(16).padStart(8, '0'))
      .join('')
  }

  toJSON(): { rule: string; digest: string } {
    return { rule: this.rule, digest: this.digest }
  }

  static {
    write = (key, offset) => {
      words[offset] = key.#rule
      words[offset + 1] = key.#first
      words[offset + 2] = key.#second
      words[offset + 3] = key.#third
      words[offset + 4] = key.#fourth
      words[offset + 5] = key.#flags
    }
    isKey = (value): value is Key => typeof value === 'object' && value !== null && #rule in value
  }
}

/** One key, or several that are decided together. */
export type Keys = Key | readonly Key[]

/** Writes the keys of the next native call into the slots. */
export function writeKeys(keys: Keys): void {
  if (isKey(keys)) {
    write(keys, 0)
    numbers[Slot.Keys] = 1
    return
  }
  if (!Array.isArray(keys)) throw notAKey()
  for (let index = 0; index < keys.length; index += 1) {
    const key: unknown = keys[index]
    if (!isKey(key)) throw notAKey()
    // A call accepts no more keys than fit here; the core refuses it by their number.
    if (index < KEYS) write(key, index * KEY_WORDS)
  }
  numbers[Slot.Keys] = keys.length
}

// A bug in the program: as an InvalidKeyError it would be answered with 400, and stay unnoticed.
function notAKey(): ConfigError {
  return new ConfigError('a key must be made by a rule: rule.key(...) or rule.ipKey(...)')
}
