//! The ways that a greedy attacker has: addresses at replicas, and when each is worth trying again.
//!
//! Invariant: ways that may pass are taken in turn, so that as many takes as there are ways try each of them once. One
//! that is kept is the exception.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) replica: u32,
    pub(crate) address: u32,
}

pub(crate) struct Lanes {
    addresses: u32,
    replicas: Vec<Replica>,
    turns: u64,
}

#[derive(Default)]
struct Replica {
    /// Denied whatever the address, until then.
    blocked_until: u64,
    /// Addresses that were tried, by the moment from which they may pass, then by when they were tried last.
    tried: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Addresses from this one on were not tried yet.
    untried: u32,
    /// The address that is taken before all others.
    kept: Option<u32>,
    /// When this replica was asked last.
    turn: u64,
}

impl Replica {
    /// When the next address may pass.
    fn ready_at(&self, addresses: u32, now: u64) -> u64 {
        let tried = self.tried.peek().map_or(u64::MAX, |Reverse((ready, ..))| *ready);
        let ready = if self.kept.is_some() || self.untried < addresses { now } else { tried };
        ready.max(self.blocked_until).max(now)
    }

    /// Takes what was kept, then fresh addresses, then those that rested longest.
    fn take(&mut self, addresses: u32) -> Option<u32> {
        if self.kept.is_some() {
            return self.kept.take();
        }
        if self.untried < addresses {
            self.untried += 1;
            return Some(self.untried - 1);
        }
        self.tried.pop().map(|Reverse((.., address))| address)
    }
}

impl Lanes {
    pub(crate) fn new(addresses: u32, replicas: u32) -> Self {
        Self { addresses, replicas: (0..replicas).map(|_| Replica::default()).collect(), turns: 0 }
    }

    /// Takes a way that may pass now.
    ///
    /// # Errors
    /// There is none before this moment.
    pub(crate) fn take(&mut self, now: u64) -> Result<Lane, u64> {
        let ready = |(at, replica): (u32, &Replica)| (replica.ready_at(self.addresses, now), replica.turn, at);
        let (ready, _, replica) = (0..).zip(&self.replicas).map(ready).min().unwrap_or((u64::MAX, 0, 0));
        if ready > now {
            return Err(ready);
        }
        self.turns += 1;
        let chosen = &mut self.replicas[replica as usize];
        chosen.turn = self.turns;
        chosen.take(self.addresses).map(|address| Lane { replica, address }).ok_or(u64::MAX)
    }

    /// Puts a way back, to be tried from `ready` on.
    pub(crate) fn put_back(&mut self, lane: Lane, ready: u64) {
        self.replicas[lane.replica as usize].tried.push(Reverse((ready, self.turns, lane.address)));
    }

    /// Puts a way back, to be taken first.
    pub(crate) fn keep(&mut self, lane: Lane) {
        self.replicas[lane.replica as usize].kept = Some(lane.address);
    }

    /// No address passes at this replica before `until`.
    pub(crate) fn block(&mut self, replica: u32, until: u64) {
        self.replicas[replica as usize].blocked_until = until;
    }
}
