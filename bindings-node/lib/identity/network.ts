/** The network of an address, as a part of a key. */
import { native } from '../native/binding.js'
import { unwrap } from '../native/failure.js'
import { known } from '../options/options.js'

const NETWORK: ReadonlySet<string> = new Set(['ipv6Prefix'])

/**
 * Returns the canonical text of the network that an address counts under, for keys of several parts:
 * `rule.key(email, network(ip))`. IPv4 is kept whole, IPv6 is cut to its prefix; IPv4 inside IPv6 counts as IPv4. A raw
 * IPv6 address in a key would give the owner of one network 2^64 fresh budgets.
 *
 * @param ipv6Prefix - leading bits that count together, 32 to 128, by default 64; alone or as an option
 * @throws {@link InvalidKeyError} when it is not an IPv4 or IPv6 address.
 */
export function network(address: string, ipv6Prefix?: number | { readonly ipv6Prefix?: number | undefined }): string {
  const prefix =
    typeof ipv6Prefix === 'object' && ipv6Prefix !== null ? known(ipv6Prefix, NETWORK).ipv6Prefix : ipv6Prefix
  return unwrap(native.network(address, prefix))
}
