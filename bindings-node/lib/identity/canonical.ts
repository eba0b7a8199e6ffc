/** One spelling for each account: emails and user names before they become keys. */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { known } from '../options/options.js'

/** Spellings that some mail providers treat as one mailbox and others do not. */
export interface EmailOptions {
  /** Drops everything from the first `+` of the local part; off by default, since not every provider ignores tags. */
  readonly dropTags?: boolean | undefined
  /** Drops the dots in the local part at gmail.com and googlemail.com; off by default. */
  readonly dropGmailDots?: boolean | undefined
}

const EMAIL: ReadonlySet<string> = new Set(['dropTags', 'dropGmailDots'])

/**
 * Returns the canonical spelling of an email, for looking up the account and for making keys: NFKC and lower case, one
 * character at a time (ß stays distinct from ss), without surrounding white space; the domain in ASCII as in DNS
 * (IDNA). Applying it twice changes nothing.
 *
 * @param text - at most 1,024 bytes as UTF-8
 * @example
 * ```ts
 * canonicalEmail(' Ann@Example.COM ') // 'ann@example.com'
 * ```
 * @throws {@link InvalidKeyError} when it is not a string, does not have exactly one `@` with characters on both sides,
 * has an invalid domain, a control character or a lone surrogate, or is too long: answer 400.
 */
export function canonicalEmail(text: string, options?: EmailOptions): string {
  const { dropTags, dropGmailDots } = known(options, EMAIL)
  return unwrap(native.canonicalEmail(text, dropTags, dropGmailDots))
}

/**
 * Returns the canonical spelling of a user name, for looking up the account and for making keys: NFKC and lower case,
 * one character at a time (ß stays distinct from ss), without surrounding white space. Applying it twice changes
 * nothing.
 *
 * @param text - at most 1,024 bytes as UTF-8
 * @throws {@link InvalidKeyError} when it is not a string, is empty, has a control character or a lone surrogate, or is
 * too long: answer 400.
 */
export function canonicalUsername(text: string): string {
  return unwrap(native.canonicalUsername(text))
}
