"""The client behind trusted proxies, with `ipaddress` and regular expressions.

Reads a header element by element from its end. Invariant: what an untrusted or unusable hop says is never looked at.
"""

import ipaddress
import re

from errors import ConfigError

MAX_HOPS = 64
MAX_BYTES = 16 * 1024
MAPPED = ipaddress.ip_network("::ffff:0:0/96")
PORT = r"(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?"
HOP = re.compile(rf"\[(?P<inside>[^\[\]]*:[^\[\]]*)\]{PORT}|(?P<v4>[0-9.]+){PORT}|(?P<v6>[^\[\]]*:[^\[\]]*)")
PAIR = r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(\"(?:[^\"\\]|\\.)*\"|[^;\s\"\\,=]+)"
ELEMENT = re.compile(rf"{PAIR}[ \t]*(?:;[ \t]*{PAIR}[ \t]*)*(?:;[ \t]*)?", re.DOTALL)


class ClientIp:
    def __init__(self, trusted_proxies, header):
        self.trusts_unix = "unix" in trusted_proxies
        self.proxies = [proxy(text) for text in trusted_proxies if text != "unix"]
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", header):
            raise ConfigError(f"header must match [A-Za-z0-9_-]{{1,64}}, header=`{header[:64]}`")
        self.header = header.lower()

    def resolve(self, peer, lines):
        hops = self.hops(lines)
        client = next(hops, None) if self.trusts_unix and not peer else address(peer or "")
        while client is not None and any(client in network for network in self.proxies):
            before = next(hops, None)
            if before is None:
                break
            client = before
        return None if client is None else str(client)

    def hops(self, lines):
        """Addresses from right to left, then None for what is no address."""
        if self.header in ("x-forwarded-for", "forwarded"):
            elements = right_to_left(lines, self.header == "forwarded")
        else:
            elements = (line if len(line.encode("utf-8", "replace")) <= MAX_BYTES else None for line in lines[:1])
            if len(lines) > 1:
                return
        for _, element in zip(range(MAX_HOPS), elements, strict=False):
            if element is None:
                return
            yield node(element) if self.header == "forwarded" else address(element)


def right_to_left(lines, quotes):
    """The elements of all lines; None for the one that the bound on bytes cuts."""
    left = MAX_BYTES
    for line in reversed(lines):
        data = line.encode("utf-8", "replace")
        seen, is_cut = data[max(0, len(data) - left) :], len(data) > left
        parts = split(seen.decode("utf-8", "replace"), quotes)
        for part in parts[:0:-1]:
            left -= len(part.encode("utf-8", "replace")) + 1
            yield part
        left -= len(parts[0].encode("utf-8", "replace"))
        yield None if is_cut else parts[0]


def split(text, quotes):
    """The parts between commas. A comma stands within quotes when the quotes to its right do not pair."""
    if not quotes:
        return text.split(",")
    parts, end, is_open = [], len(text), False
    for at in range(len(text) - 1, -1, -1):
        if text[at] == '"':
            before = text[:at]
            is_escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
            is_open = is_escaped if is_open else True
        elif text[at] == "," and not is_open:
            parts.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(parts)]


def node(element):
    """The address in the one `for` of an element of RFC 7239."""
    element = element.strip(" \t")
    if not ELEMENT.fullmatch(element):
        return None
    pairs = [(name.lower(), value) for name, value in re.findall(PAIR, element, re.DOTALL)]
    values = [value for name, value in pairs if name == "for"]
    return address(values[0].removeprefix('"').removesuffix('"')) if len(values) == 1 else None


def address(text):
    found = HOP.fullmatch(text.strip(" \t"))
    if not found:
        return None
    bare = found["inside"] or found["v4"] or found["v6"]
    bare, percent, zone = bare.partition("%")
    if percent and not zone:
        return None
    try:
        parsed = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def proxy(text):
    shown = text[:64]
    junk = ConfigError(f"trusted proxy must be an address or a network such as 10.0.0.0/8, or unix, proxy=`{shown}`")
    if "%" in text or not re.fullmatch(r"[^/]+(/[0-9]+)?", text):
        raise junk
    try:
        loose = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise junk from None
    if loose.network_address != ipaddress.ip_interface(text).ip:
        raise ConfigError(f"trusted proxy must have no bits set beyond its prefix, proxy=`{shown}`")
    if loose.version == 6 and loose.subnet_of(MAPPED):
        inner = loose.network_address.ipv4_mapped
        return ipaddress.ip_network(f"{inner}/{loose.prefixlen - MAPPED.prefixlen}")
    return loose
