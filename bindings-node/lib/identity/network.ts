/** The network of an address, as a part of a key. */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { known } from '../options/options.js'

const NETWORK: ReadonlySet<string> = new Set(['ipv6Prefix'])

/**
 * The canonical text of the bucket that an address falls into, for keys of several parts: `rule.key(email, network(ip))`.
 * IPv4 whole, IPv6 by its prefix; IPv4 inside of IPv6 counts as itself. A raw IPv6 address in a key would hand the owner
 * of one network 2^64 fresh budgets.
 *
 * @param ipv6Prefix - leading bits that count together, 32 to 128, by default 64; bare or as an option
 * @throws {@link InvalidKeyError} when it is not an IPv4 or IPv6 address.
 */
export function network(address: string, ipv6Prefix?: number | { readonly ipv6Prefix?: number | undefined }): string {
  const prefix =
    typeof ipv6Prefix === 'object' && ipv6Prefix !== null ? known(ipv6Prefix, NETWORK).ipv6Prefix : ipv6Prefix
  return unwrap(native.network(address, prefix))
}
