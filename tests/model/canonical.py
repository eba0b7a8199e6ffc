"""Canonical spellings of emails and user names, with `unicodedata` and the codec of Punycode.

Knows of UTS 46 what the vectors need. Invariant: two letters that a reader tells apart are never merged.
"""

import unicodedata

from errors import InvalidKeyError

MAX_BYTES = 1024
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
IGNORED_IN_DOMAINS = dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF))
NOT_IN_DOMAINS = set(' "#%/:<>?@[\\]^`{|}\x7f') | set(map(chr, range(0x20)))
# Formats that show something: signs that stand before digits or enclose them, and the joiners of hieroglyphs.
SHOWN_FORMATS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}
# Other_Default_Ignorable_Code_Point and Variation_Selector.
OTHER_INVISIBLE = (
    (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x2065, 0x3164, 0xFFA0),
    range(0x180B, 0x180E),
    range(0xFE00, 0xFE10),
    range(0xFFF0, 0xFFF9),
    range(0xE0000, 0xE1000),
)
GMAIL = ("gmail.com", "googlemail.com")


def email(text, drop_tags=False, drop_gmail_dots=False):
    text = plain("an email", text)
    if text.count("@") != 1:
        raise InvalidKeyError("an email must have exactly one @")
    local, _, domain = text.partition("@")
    domain = ascii_domain(domain) if domain else ""
    if drop_tags:
        local = local[:1] + local[1:].split("+")[0]
    if drop_gmail_dots and domain in GMAIL:
        local = folded(local.replace(".", "")).lstrip(WHITE_SPACE)
    if not local or not domain:
        raise InvalidKeyError("an email must have text on both sides of the @")
    return bounded("an email", f"{local}@{domain}")


def username(text):
    text = plain("a username", text)
    if not text:
        raise InvalidKeyError("a username must not be empty")
    return bounded("a username", text)


def plain(what, text):
    # A pair of surrogates is one character, as other languages hold it; what is left of them stands alone.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if any(unicodedata.category(char) == "Cs" for char in bounded(what, text)):
        raise InvalidKeyError(f"{what} must have no lone surrogate")
    text = folded(text.strip(WHITE_SPACE))
    text = folded("".join(char for char in text if not is_invisible(char))).strip(WHITE_SPACE)
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise InvalidKeyError(f"{what} must have no control character")
    return text


def is_invisible(char):
    """Default_Ignorable_Code_Point as Unicode derives it from other properties, and the interlinear annotations."""
    code = ord(char)
    if unicodedata.category(char) == "Cf":
        return code not in SHOWN_FORMATS
    return any(code in codes for codes in OTHER_INVISIBLE)


def bounded(what, text):
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidKeyError(f"{what} must be at most {MAX_BYTES} bytes")
    return text


def folded(text):
    compatible = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFKC", "".join(char.lower() for char in compatible))


def ascii_domain(domain):
    labels = domain.translate(IGNORED_IN_DOMAINS).replace("\u3002", ".").split(".")
    if len(labels) > 1 and labels[-1] == "":
        labels.pop()
    made = [ascii_label(label) for label in labels]
    if len(".".join(made)) > 253 or not all(1 <= len(label) <= 63 for label in made):
        raise no_domain()
    return ".".join(made)


def ascii_label(label):
    if label.startswith("xn--"):
        try:
            decoded = label[4:].encode().decode("punycode")
        except (UnicodeError, OverflowError):
            raise no_domain() from None
        if decoded.isascii() or ascii_label(decoded) != label:
            raise no_domain()
        return label
    if NOT_IN_DOMAINS & set(label) or any(unicodedata.category(char) in ("Cc", "Cn", "Co") for char in label):
        raise no_domain()
    if label and unicodedata.category(label[0]).startswith("M"):
        raise no_domain()
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def no_domain():
    return InvalidKeyError("the domain of an email must be a domain name")
