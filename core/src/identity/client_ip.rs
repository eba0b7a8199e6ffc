//! The client behind trusted proxies.
//!
//! Pure but for one flag, which lets a warning be given once. Knows no request and no framework: a host hands over the
//! peer of the socket and the lines of the headers that [`ClientIp::header_names`] asks for. Invariant: the answer is the peer, or an
//! address that a trusted hop vouches for; it never stands to the left of a hop that is untrusted or unusable.
//! Specified by `tests/vectors/client-ip.json`.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use ipnet::{IpNet, Ipv4Net};

use crate::error::{Error, shown};
use crate::identity::hops::{self, Hops, Syntax};

pub(crate) const DEFAULT_HEADER: &str = "x-forwarded-for";
/// Headers that only a proxy has reason to send.
const FORWARDING_HEADERS: [&str; 5] = [DEFAULT_HEADER, "forwarded", "x-real-ip", "cf-connecting-ip", "true-client-ip"];
/// The name of a trusted proxy without an address: whoever connects over a Unix socket.
const UNIX: &str = "unix";
const UNHEEDED_UNIX: &str = "a forwarding header came over a Unix socket, but no proxy is trusted: no client behind that \
                             socket has an address; add `unix` to the trusted proxies of ClientIp";
const UNHEEDED: &str = "a forwarding header came from a private address, but no proxy is trusted: all clients behind \
                        that address count as one; name your proxies in the trusted proxies of ClientIp";

/// Finds the address of the client from the peer of the socket and what trusted proxies have written.
///
/// Walks from the socket peer to the left through one header: while a hop is trusted, the hop before it is looked at. The
/// first hop that is not trusted is the client; if all are, the leftmost. A hop that is no address ends the walk at the
/// last trusted one. At most 64 hops and 16 KiB of the header are looked at, counted from its end; what lies beyond is no
/// address. Without proxies the peer is the client, whatever the headers say.
///
/// ```
/// use doorkeep::ClientIp;
///
/// let client_ip = ClientIp::new(&["10.0.0.0/8"], "x-forwarded-for")?;
/// let address = client_ip.resolve("10.0.0.1", &["198.51.100.7, 203.0.113.9"]).map(|address| address.to_string());
/// assert_eq!(address.as_deref(), Some("203.0.113.9"));
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[derive(Debug)]
pub struct ClientIp {
    proxies: Vec<IpNet>,
    trusts_unix: bool,
    header: String,
    syntax: Syntax,
    has_warned: AtomicBool,
}

impl ClientIp {
    /// How much of the end of a line is looked at; a host with long lines needs to hand over no more.
    pub const REACH: usize = hops::MAX_BYTES + 1;

    /// Trusts these addresses and networks to write this header. The proxy `unix` is a peer without an address, as a
    /// connection over a Unix socket has: a host that loses the addresses of its TCP peers must not pass them as missing.
    ///
    /// `x-forwarded-for` is a list of addresses, `forwarded` is that of RFC 7239, and any other header holds one address:
    /// with several, or when it came several times, it says nothing.
    ///
    /// # Errors
    /// A proxy is no address and no network, a network has bits set beyond its prefix, or the header is no name.
    pub fn new(trusted_proxies: &[&str], header: &str) -> Result<Self, Error> {
        let networks = trusted_proxies.iter().filter(|&&text| text != UNIX);
        let proxies = networks.map(|text| proxy(text)).collect::<Result<_, _>>()?;
        let trusts_unix = trusted_proxies.contains(&UNIX);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !(1..=64).contains(&header.len()) || !header.bytes().all(is_name) {
            return Err(Error::config(format!("header must match [A-Za-z0-9_-]{{1,64}}, header=`{}`", shown(header))));
        }
        let header = header.to_ascii_lowercase();
        let syntax = match header.as_str() {
            DEFAULT_HEADER => Syntax::List,
            "forwarded" => Syntax::Forwarded,
            _ => Syntax::Single,
        };
        Ok(Self { proxies, trusts_unix, header, syntax, has_warned: AtomicBool::new(false) })
    }

    /// The name of the header in lower case.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The trusted networks, each in canonical text, and `unix` last.
    pub fn trusted_proxies(&self) -> impl Iterator<Item = String> {
        let unix = self.trusts_unix.then(|| UNIX.to_owned());
        self.proxies.iter().map(ToString::to_string).chain(unix)
    }

    /// The headers whose lines the other methods take, in lower case: the one that proxies write, and without proxies
    /// those that give away that one is there.
    #[must_use]
    pub fn header_names(&self) -> Vec<&str> {
        let others = FORWARDING_HEADERS.iter().copied().filter(|&name| name != self.header && self.trusts_nobody());
        std::iter::once(self.header()).chain(others).collect()
    }

    /// The address of the client; none when the peer is not an address and not trusted as `unix`. Lines are in the order in which
    /// they came. An IPv4 address mapped into IPv6 is that IPv4 address, and zones are dropped.
    #[must_use]
    pub fn resolve<L: AsRef<[u8]>>(&self, peer: &str, lines: &[L]) -> Option<IpAddr> {
        let mut hops = Hops::new(self.syntax, lines);
        let mut client = match hops::address(peer.as_bytes()) {
            None if self.trusts_unix && peer.is_empty() => hops.next()?,
            address => address?,
        };
        while self.trusts(client) {
            let Some(before) = hops.next() else { break };
            client = before;
        }
        Some(client)
    }

    /// A warning, once, that a forwarding header came from a private address or a peer without one although no proxy is
    /// trusted: then all clients of a proxy share its address, or have none.
    #[must_use]
    pub fn warning<L: AsRef<[u8]>>(&self, peer: &str, lines: &[L]) -> Option<&'static str> {
        if !self.trusts_nobody() || lines.is_empty() {
            return None;
        }
        let warning = if peer.is_empty() {
            UNHEEDED_UNIX
        } else if hops::address(peer.as_bytes()).is_some_and(is_private) {
            UNHEEDED
        } else {
            return None;
        };
        (!self.has_warned.swap(true, Ordering::Relaxed)).then_some(warning)
    }

    fn trusts_nobody(&self) -> bool {
        self.proxies.is_empty() && !self.trusts_unix
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(&address))
    }
}

fn proxy(text: &str) -> Result<IpNet, Error> {
    let network = network(text).ok_or_else(|| {
        let text = shown(text);
        Error::config(format!(
            "trusted proxy must be an address or a network such as 10.0.0.0/8, or unix, proxy=`{text}`"
        ))
    })?;
    if network != network.trunc() {
        let text = shown(text);
        return Err(Error::config(format!("trusted proxy must have no bits set beyond its prefix, proxy=`{text}`")));
    }
    Ok(unmapped(network))
}

/// Addresses are read by the standard library, which takes no leading zeros: 010.0.0.0 is 8.0.0.0 elsewhere.
fn network(text: &str) -> Option<IpNet> {
    let Some((address, prefix)) = text.split_once('/') else {
        return text.parse().map(IpAddr::into).ok();
    };
    let prefix = prefix.bytes().all(|b| b.is_ascii_digit()).then_some(prefix)?;
    IpNet::new(address.parse().ok()?, prefix.parse().ok()?).ok()
}

/// A network of IPv4 addresses mapped into IPv6 is that of the IPv4 addresses, as the addresses themselves are.
fn unmapped(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let v4 = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    v4.and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok()).map_or(network, IpNet::V4)
}

/// Whether a machine of one's own speaks from there: this host, a private network, or that of a carrier or cluster.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
