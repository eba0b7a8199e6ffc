/** One spelling for each account: emails and user names before they become keys. */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { known } from '../options/options.js'

/** What providers of mail take for one mailbox and others do not. */
export interface EmailOptions {
  /** Drops from the first `+` of the local part on; by default not, since not every provider ignores tags. */
  readonly dropTags?: boolean | undefined
  /** Drops the dots in the local part at gmail.com and googlemail.com; by default not. */
  readonly dropGmailDots?: boolean | undefined
}

const EMAIL: ReadonlySet<string> = new Set(['dropTags', 'dropGmailDots'])

/**
 * The canonical spelling of an email, to look the account up by and to make keys of: NFKC and lower case, one character
 * at a time (ß stays apart from ss), without white space around it; the domain in ASCII as in DNS (IDNA). Applying it
 * twice changes nothing.
 *
 * @param text - at most 1,024 bytes as UTF-8
 * @example
 * ```ts
 * canonicalEmail(' Ann@Example.COM ') // 'ann@example.com'
 * ```
 * @throws {@link InvalidKeyError} when it is no text, has not exactly one `@` with text on both sides, has a domain that
 * is none, a control character or a lone surrogate, or is too long: answer 400.
 */
export function canonicalEmail(text: string, options?: EmailOptions): string {
  const { dropTags, dropGmailDots } = known(options, EMAIL)
  return unwrap(native.canonicalEmail(text, dropTags, dropGmailDots))
}

/**
 * The canonical spelling of a user name, to look the account up by and to make keys of: NFKC and lower case, one
 * character at a time (ß stays apart from ss), without white space around it. Applying it twice changes nothing.
 *
 * @param text - at most 1,024 bytes as UTF-8
 * @throws {@link InvalidKeyError} when it is no text, is empty, has a control character or a lone surrogate, or is too
 * long: answer 400.
 */
export function canonicalUsername(text: string): string {
  return unwrap(native.canonicalUsername(text))
}
