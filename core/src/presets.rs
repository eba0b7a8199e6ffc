//! Rules that are ready to use, each with the claim that it keeps and where the claim comes from.
//!
//! Knows nothing of limiters. Invariant: a preset's numbers never change under its name, since a changed policy starts
//! fresh and a published claim must stay true. Every claim is held by `max_in` and by an attacker who takes all that
//! the limiter gives. Specified by `tests/vectors/presets.json`.
//!
//! No preset claims NIST SP 800-63B's "no more than 100 consecutive failures": that count never expires, and every
//! state here has an end.
//!
//! ```
//! use doorkeep::{Limiter, Timestamp, network, presets};
//!
//! let (ip, pair, account) = (presets::login_ip(), presets::login_account_ip(), presets::login_account());
//! let (address, email) = ("203.0.113.9", "ann@example.com");
//! let bucket = network(address, pair.ipv6_prefix())?;
//! let keys = [
//!     ip.ip_key(address)?,
//!     pair.key(&[email.as_bytes(), bucket.as_bytes()])?,
//!     account.key(&[email.as_bytes()])?,
//! ];
//! assert_eq!(Limiter::new(100_000)?.decide(&keys, 1, Timestamp::now())?.remaining, 4);
//! # Ok::<(), doorkeep::Error>(())
//! ```

use std::time::Duration;

use crate::rule::Rule;

macro_rules! presets {
    ($($(#[$doc:meta])* $name:ident = $rule:literal, $by:expr, $policy:expr;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name() -> Rule {
                $policy.rule($rule, &$by)
            }
        )*

        /// All presets, in the order of this page.
        #[must_use]
        pub fn all() -> Vec<Rule> {
            vec![$($name()),*]
        }
    };
}

presets! {
    /// Logins by address: `20/1m,200/1h,1000/1d`; at most 39 in a minute, 399 in an hour, 1,999 in a day.
    ///
    /// Short windows against bursts and long ones against patience, as the OWASP Authentication Cheat Sheet asks for.
    login_ip = "login-ip", ["address"], Rates("20/1m,200/1h,1000/1d");

    /// Logins by the wider network of the address, an IPv6 /48: `100/1m,1000/1h,5000/1d`, five times [`login_ip`]; at most
    /// 199 in a minute, 1,999 in an hour, 9,999 in a day.
    ///
    /// Beside [`login_ip`], in the same call: the owner of a /48 has 65,536 networks of /64, and each counts there as a
    /// client of its own. An IPv4 address is its own wider network, and `login_ip` denies it first.
    login_network = "login-network", ["address"], Wider("100/1m,1000/1h,5000/1d", 48);

    /// Logins by account and address: `5/1m,20/1h,40/1d`; at most 9 in a minute, 39 in an hour, 79 in a day.
    ///
    /// Never alone: an attacker with many addresses has a fresh budget for each of them.
    login_account_ip = "login-account-ip", ["account", "address"], Rates("5/1m,20/1h,40/1d");

    /// Logins by account: `20/1h,50/1d`; at most 20 in a minute, 39 in an hour, 99 in a day.
    ///
    /// OWASP ASVS 4.0.3, V2.2.1: at most 100 failed attempts an hour on one account.
    login_account = "login-account", ["account"], Rates("20/1h,50/1d");

    /// Logins by account, the loosest that keeps ASVS: `50/1h`; at most 99 in an hour, 1,249 in a day.
    ///
    /// OWASP ASVS 4.0.3, V2.2.1. `100/1h` does not keep it: 199 pass in the first hour.
    login_account_asvs = "login-account-asvs", ["account"], Rates("50/1h");

    /// Logins by account, for accounts that are worth patience: `10/1h,20/1d,60/30d`; at most 19 in an hour, 39 in a day.
    login_account_strict = "login-account-strict", ["account"], Rates("10/1h,20/1d,60/30d");

    /// Strikes by account: 10, then 30 minutes; at most 10 in half an hour, 480 in a day.
    ///
    /// PCI DSS 4.0, 8.3.4: lock out after not more than 10 attempts, for at least 30 minutes. Anybody can bring the
    /// lockout about: put a rule on the client before it.
    pci_dss_4 = "pci-dss-4", ["account"], Strikes(10, 30);

    /// Logins by account: `5/5m`; at most 9 in five minutes, 64 in an hour, 1,444 in a day.
    ///
    /// Cyber Essentials: no more than 10 guesses in 5 minutes.
    cyber_essentials = "cyber-essentials", ["account"], Rates("5/5m");

    /// Strikes by account: 5, then 15 minutes; at most 20 in an hour, 480 in a day.
    ///
    /// CIS Microsoft Windows benchmarks: lock out after 5 or fewer attempts, for 15 minutes or more.
    cis_windows = "cis-windows", ["account"], Strikes(5, 15);

    /// Strikes by account: 5, then 15 minutes, the defaults of HashiCorp Vault's user lockout.
    vault = "vault", ["account"], Strikes(5, 15);

    /// Strikes by account: 3, then 15 minutes; at most 12 in an hour, 288 in a day.
    ///
    /// DISA STIG: lock out after 3 failed attempts within 15 minutes.
    stig = "stig", ["account"], Strikes(3, 15);

    /// Checks of one-time passwords by account: `5/10m,10/1h,20/1d`; at most 19 in an hour, 39 in a day.
    otp_verify = "otp-verify", ["account"], Rates("5/10m,10/1h,20/1d");

    /// One-time passwords sent to one email address: `1/1m,5/1h,10/1d`; at most 9 in an hour, 19 in a day.
    otp_send = "otp-send", ["email"], Rates("1/1m,5/1h,10/1d");

    /// Links that reset a password, sent to one email address: `1/1m,5/1h,10/1d`, as [`otp_send`].
    reset_send = "reset-send", ["email"], Rates("1/1m,5/1h,10/1d");

    /// One-time passwords asked for or checked by one address: `10/1m,50/1h`; at most 19 in a minute, 99 in an hour.
    otp_ip = "otp-ip", ["address"], Rates("10/1m,50/1h");

    /// Resets of passwords asked for by one address: `10/1m,50/1h`, as [`otp_ip`].
    reset_ip = "reset-ip", ["address"], Rates("10/1m,50/1h");

    /// Tokens issued to one subject: `100/1m`, what a [`TokenBucket`](crate::TokenBucket) gives by default.
    token_issue = "token-issue", ["subject"], Rates("100/1m");
}

/// The policy of a preset as this page writes it.
enum Preset {
    Rates(&'static str),
    /// Rates, by an IPv6 prefix of so many bits.
    Wider(&'static str, u8),
    /// So many attempts, then so many minutes.
    Strikes(u32, u64),
}

use Preset::{Rates, Strikes, Wider};

impl Preset {
    fn rule(self, name: &str, by: &[&str]) -> Rule {
        let rated = |text: &str| text.parse().and_then(|rates| Rule::new(name, rates));
        let rule = match self {
            Rates(text) => rated(text),
            Wider(text, prefix) => rated(text).and_then(|rule| rule.with_ipv6_prefix(prefix)),
            Strikes(threshold, minutes) => Rule::strikes(name, threshold, Duration::from_secs(minutes * 60)),
        };
        rule.and_then(|rule| rule.with_by(by)).expect("a preset keeps the bounds of rules")
    }
}
