"""Key digests and the network of an address.

Knows nothing of rules. Invariant: different parts never share a digest, and one client's addresses share a network.
"""

import hashlib
import hmac
import ipaddress

from errors import InvalidKeyError, whole

SIX_TO_FOUR = 0x2002


def digest(parts, secret=None):
    """The first 16 bytes, in hex, of SHA-256 (HMAC with a secret) over each part's length and bytes."""
    message = message_of(parts)
    if secret is None:
        return hashlib.sha256(message).hexdigest()[:32]
    return hmac.new(secret, message, hashlib.sha256).hexdigest()[:32]


def message_of(parts):
    if not parts:
        raise InvalidKeyError("a key needs at least one part")
    message = b""
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, str):
            raise InvalidKeyError(f"a key part must be text, part={number}")
        if part == "":
            raise InvalidKeyError(f"a key part must not be empty, part={number}")
        data = wtf8(part)
        message += len(data).to_bytes(4, "big") + data
    return message


def wtf8(text):
    """UTF-8 in which a lone surrogate is three bytes and a pair of surrogates is its one character."""
    utf16 = text.encode("utf-16-le", "surrogatepass")
    return utf16.decode("utf-16-le", "surrogatepass").encode("utf-8", "surrogatepass")


def network(address, prefix=64):
    """The text of an address's bucket: an IPv4 address, or an IPv6 network of `prefix` bits."""
    prefix = whole("ipv6 prefix", 32, 128, prefix)
    parsed = parse_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    inner = inner_ipv4(int(parsed))
    if inner is not None:
        return str(ipaddress.IPv4Address(inner))
    kept = int(parsed) >> (128 - prefix) << (128 - prefix)
    return f"{ipaddress.IPv6Address(kept)}/{prefix}"


def parse_address(address):
    try:
        if not isinstance(address, str):
            raise ValueError
        if ":" not in address:
            return ipaddress.IPv4Address(address)
        return ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        raise InvalidKeyError("not an IPv4 or IPv6 address") from None


def inner_ipv4(bits):
    """The IPv4 address inside a mapped, NAT64 or 6to4 address, decided on bits."""
    if bits >> 32 == 0xFFFF or bits >> 32 == 0x0064_FF9B << 64:
        return bits & 0xFFFF_FFFF
    if bits >> 112 == SIX_TO_FOUR:
        return (bits >> 80) & 0xFFFF_FFFF
    return None


def single_key(key):
    """The key of a limiter that takes one text: any text but the empty one."""
    if not isinstance(key, str):
        raise InvalidKeyError("a key must be text")
    if key == "":
        raise InvalidKeyError("a key must not be empty")
    return wtf8(key)
