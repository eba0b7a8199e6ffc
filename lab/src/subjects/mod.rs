//! The limiters of this crate as subjects: the very code that runs in production, with keys made from numbers.

mod rule_set;
mod single;

pub(crate) use rule_set::RuleSet;
pub(crate) use single::{Bucket, FirstComes, StrikeKeys};

use std::net::IpAddr;

use doorkeep::{Timestamp, network_start};

use crate::policy::By;
use crate::subject::Request;

/// Keys of the lab are its own, and its runs must be repeatable.
pub(crate) const SEED: u64 = 0;

/// What stands for a key: the account and the bucket of the address, each with a bit that says whether it is there.
fn key_parts(by: By, request: &Request, ipv6_prefix: u8) -> (u64, u128) {
    let account = if by.account { u64::from(request.account) | 1 << 32 } else { 0 };
    let address = if by.address {
        bits_of(network_start(request.address, ipv6_prefix).expect("a rule has a valid prefix"))
    } else {
        0
    };
    (account, address)
}

fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn at(now: u64) -> Timestamp {
    Timestamp::from_micros(now).expect("a run lasts at most 2^48 microseconds")
}
