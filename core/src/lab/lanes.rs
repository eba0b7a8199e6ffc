//! The ways that a greedy attacker has: addresses at replicas, and when each is worth trying again.

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
}

#[derive(Default)]
struct Replica {
    /// Denied whatever the address, until then.
    blocked_until: u64,
    /// Addresses that were tried, by the moment from which they may pass.
    tried: BinaryHeap<Reverse<(u64, u32)>>,
    /// Addresses from this one on were not tried yet.
    untried: u32,
}

impl Replica {
    /// When the next address may pass.
    fn ready_at(&self, addresses: u32, now: u64) -> u64 {
        let tried = self.tried.peek().map_or(u64::MAX, |Reverse((ready, _))| *ready);
        let ready = if self.untried < addresses { now } else { tried };
        ready.max(self.blocked_until)
    }
}

impl Lanes {
    pub(crate) fn new(addresses: u32, replicas: u32) -> Self {
        Self { addresses, replicas: (0..replicas).map(|_| Replica::default()).collect() }
    }

    /// Takes a way that may pass now.
    ///
    /// # Errors
    /// There is none before this moment.
    pub(crate) fn take(&mut self, now: u64) -> Result<Lane, u64> {
        let ready = |(replica, lanes): (u32, &Replica)| (lanes.ready_at(self.addresses, now), replica);
        let (ready, replica) = (0..).zip(&self.replicas).map(ready).min().unwrap_or((u64::MAX, 0));
        if ready > now {
            return Err(ready);
        }
        let lanes = &mut self.replicas[replica as usize];
        // Fresh addresses first, then those that rested longest.
        let is_fresh = lanes.untried < self.addresses;
        let tried = if is_fresh { None } else { lanes.tried.pop() };
        let address = tried.map_or(lanes.untried, |Reverse((_, address))| address);
        lanes.untried += u32::from(is_fresh);
        Ok(Lane { replica, address })
    }

    /// Puts a way back, to be tried from `ready` on.
    pub(crate) fn put_back(&mut self, lane: Lane, ready: u64) {
        self.replicas[lane.replica as usize].tried.push(Reverse((ready, lane.address)));
    }

    /// No address passes at this replica before `until`.
    pub(crate) fn block(&mut self, replica: u32, until: u64) {
        self.replicas[replica as usize].blocked_until = until;
    }
}
