//! The bucket that a client address falls into.
//!
//! Pure. Invariant: it is decided on bits, never on text, so no spelling of an address has a
//! bucket of its own. Specified by `tests/vectors/network.json`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bounds::IPV6_PREFIX;
use crate::error::Error;

/// The canonical text of an address's bucket: IPv4 whole, IPv6 by its prefix (32 to 128).
///
/// An IPv4 address inside IPv6 (mapped, NAT64, 6to4) is that IPv4 address; zone ids are dropped.
///
/// # Errors
/// The text is not an address ([`ErrorKind::InvalidKey`](crate::ErrorKind)) or the prefix is out of bounds.
///
/// ```
/// assert_eq!(doorkeep::network("2001:db8:0:1::5", 64)?, "2001:db8:0:1::/64");
/// assert_eq!(doorkeep::network("::ffff:192.0.2.1", 64)?, "192.0.2.1");
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub fn network(address: &str, ipv6_prefix: u8) -> Result<String, Error> {
    IPV6_PREFIX.check(ipv6_prefix)?;
    Ok(match first_address(parse(address)?, ipv6_prefix) {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("{v6}/{ipv6_prefix}"),
    })
}

/// The first address of the bucket that [`network`] names, for callers that have addresses and need no text.
///
/// # Errors
/// The prefix is out of bounds.
///
/// ```
/// let address: std::net::IpAddr = "2001:db8:0:1::5".parse()?;
/// assert_eq!(doorkeep::network_start(address, 64)?.to_string(), "2001:db8:0:1::");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn network_start(address: IpAddr, ipv6_prefix: u8) -> Result<IpAddr, Error> {
    Ok(first_address(address, IPV6_PREFIX.check(ipv6_prefix)?))
}

fn first_address(address: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match embedded_v4(v6) {
            Some(v4) => v4.into(),
            None => Ipv6Addr::from_bits(v6.to_bits() & mask(ipv6_prefix)).into(),
        },
    }
}

/// An address of either family; the zone of an IPv6 address is dropped.
pub(super) fn parse(address: &str) -> Result<IpAddr, Error> {
    let junk = || Error::key("not an IPv4 or IPv6 address");
    match address.split_once('%') {
        Some((v6, zone)) if !zone.is_empty() => v6.parse().map(IpAddr::V6).map_err(|_| junk()),
        Some(_) => Err(junk()),
        None => address.parse().map_err(|_| junk()),
    }
}

fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let low = u32::try_from(bits & u128::from(u32::MAX)).expect("masked to 32 bits");
    match bits >> 32 {
        0xffff | 0x64_ff9b_0000_0000_0000_0000 => Some(Ipv4Addr::from_bits(low)),
        _ if bits >> 112 == 0x2002 => {
            let high = u32::try_from(bits >> 80 & u128::from(u32::MAX)).expect("masked to 32 bits");
            Some(Ipv4Addr::from_bits(high))
        }
        _ => None,
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX << (128 - u32::from(prefix))
}
