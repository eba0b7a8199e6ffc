"""Rules that are ready to use, each with the claim that it meets and the source of the claim.

::

    from doorkeep import Limiter, network, presets

    keys = [
        presets.login_ip.ip_key(address),
        presets.login_account_ip.key(email, network(address)),
        presets.login_account.key(email),
    ]
    decision = limiter.decide(*keys)

To use a secret, make your own rule from a preset: ``Rule(p.name, p.rates, secret=..., by=p.by)``.

No preset claims NIST SP 800-63B's "no more than 100 consecutive failures": that count never expires, and every state
here expires. The numbers are the core's. Invariant: the numbers of a preset never change.
"""

from __future__ import annotations

from doorkeep._native import Rule, StrikeRule, _presets

__all__ = [
    "cis_windows",
    "cyber_essentials",
    "login_account",
    "login_account_asvs",
    "login_account_ip",
    "login_account_strict",
    "login_ip",
    "login_network",
    "otp_ip",
    "otp_send",
    "otp_verify",
    "pci_dss_4",
    "reset_ip",
    "reset_send",
    "stig",
    "token_issue",
    "vault",
]

_named = _presets()

login_ip: Rule = _named["login-ip"]
"""Logins by address: ``20/1m,200/1h,1000/1d``; at most 39 in a minute, 399 in an hour, 1,999 in a day.

Short windows against bursts and long ones against patience, as the OWASP Authentication Cheat Sheet asks for.
"""

login_network: Rule = _named["login-network"]
"""Logins by the wider network of the address, an IPv6 /48: ``100/1m,1000/1h,5000/1d``, five times `login_ip`.

Use it together with `login_ip`, in the same call: the owner of a /48 has 65,536 networks of /64, and `login_ip` counts
each as a separate client. At most 199 in a minute, 1,999 in an hour, 9,999 in a day.
"""

login_account_ip: Rule = _named["login-account-ip"]
"""Logins by account and address: ``5/1m,20/1h,40/1d``; at most 9 in a minute, 39 in an hour, 79 in a day.

Never alone: an attacker with many addresses has a fresh budget for each of them.
"""

login_account: Rule = _named["login-account"]
"""Logins by account: ``20/1h,50/1d``; at most 20 in a minute, 39 in an hour, 99 in a day.

OWASP ASVS 4.0.3, V2.2.1: at most 100 failed attempts an hour on one account.
"""

login_account_asvs: Rule = _named["login-account-asvs"]
"""Logins by account, the loosest that keeps ASVS: ``50/1h``; at most 99 in an hour, 1,249 in a day.

OWASP ASVS 4.0.3, V2.2.1. ``100/1h`` does not keep it: 199 pass in the first hour.
"""

login_account_strict: Rule = _named["login-account-strict"]
"""Logins by account, for accounts worth patience: ``10/1h,20/1d,60/30d``; at most 19 in an hour, 39 in a day."""

pci_dss_4: StrikeRule = _named["pci-dss-4"]
"""Strikes by account: 10, then 30 minutes; at most 480 in a day.

PCI DSS 4.0, 8.3.4: lock out after not more than 10 attempts, for at least 30 minutes. Anybody can bring the lockout
about: put a rule on the client before it.
"""

cyber_essentials: Rule = _named["cyber-essentials"]
"""Logins by account: ``5/5m``; at most 9 in five minutes, 64 in an hour, 1,444 in a day.

Cyber Essentials: no more than 10 guesses in 5 minutes.
"""

cis_windows: StrikeRule = _named["cis-windows"]
"""Strikes by account: 5, then 15 minutes; at most 20 in an hour, 480 in a day.

CIS Microsoft Windows benchmarks: lock out after 5 or fewer attempts, for 15 minutes or more.
"""

vault: StrikeRule = _named["vault"]
"""Strikes by account: 5, then 15 minutes, the defaults of HashiCorp Vault's user lockout."""

stig: StrikeRule = _named["stig"]
"""Strikes by account: 3, then 15 minutes; at most 12 in an hour, 288 in a day.

DISA STIG: lock out after 3 failed attempts within 15 minutes.
"""

otp_verify: Rule = _named["otp-verify"]
"""Checks of one-time passwords by account: ``5/10m,10/1h,20/1d``; at most 19 in an hour, 39 in a day."""

otp_send: Rule = _named["otp-send"]
"""One-time passwords sent to one email address: ``1/1m,5/1h,10/1d``; at most 9 in an hour, 19 in a day."""

reset_send: Rule = _named["reset-send"]
"""Links that reset a password, sent to one email address: ``1/1m,5/1h,10/1d``."""

otp_ip: Rule = _named["otp-ip"]
"""One-time passwords asked for or checked by one address: ``10/1m,50/1h``; at most 19 in a minute, 99 in an hour."""

reset_ip: Rule = _named["reset-ip"]
"""Resets of passwords asked for by one address: ``10/1m,50/1h``."""

token_issue: Rule = _named["token-issue"]
"""Tokens issued to one subject: ``100/1m``, the default of a `TokenBucket`."""
