//! An attacker at work: which guess comes next, from where, and when.
//!
//! Knows the answers that it is given and no limiter. Invariant: a greedy attacker makes every admitted guess at the first
//! moment at which it is admitted, up to its top speed; its closed forms hold to the last unit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::columns::{Table, count, seconds};
use crate::lanes::{Lane, Lanes};
use crate::rng::{Rng, mean_gap};
use crate::scenario::{self, Attack, Pace, Scenario};
use crate::subject::{Answer, Request};
use crate::tally::{Tally, Who, World};
use crate::targets::{Target, Targets};

const SECOND: u64 = 1_000_000;
/// Accounts that nobody else has, for fresh keys and for accounts of the attackers' own.
const FRESH: u32 = 1 << 31;
const OWN: u32 = 1 << 30;
const NO_WALK: (u64, u64) = (0, u64::MAX);

pub(crate) struct Attacker {
    index: u32,
    spec: scenario::Attacker,
    tally: Tally,
    targets: Targets,
    /// When guesses were admitted, the first ones.
    admissions: Vec<u64>,
    lanes: Lanes,
    /// Ways by which the account that is held was denied, when another one may still pass, and the shortest wait.
    walk: (u64, u64),
    /// Whether an address is used up before the next one: strikes lapse together, and a few on each would not lapse sooner.
    uses_up: bool,
    /// Whether each account remembers its own way, since no rule closes one to all of them.
    takes_turns: bool,
    rng: Rng,
    /// Ticks that a steady attacker made.
    ticks: u64,
    /// The second of the run that a greedy one is in, and its attempts in it.
    second: u64,
    in_this_second: u32,
    /// Admitted attempts since a round began: of a flood, or between two own logins.
    round: u32,
    fresh: u32,
    guesses: u64,
    last_guess: Option<u64>,
    /// How many admissions are kept with their times.
    record: usize,
}

/// What an attempt is for.
enum Aim {
    Guess(Target),
    FreshKey(u32),
    OwnLogin,
}

impl Attacker {
    pub(crate) fn new(index: u32, scenario: &Scenario, replicas: u32) -> Self {
        let (spec, run) = (&scenario.attackers[index as usize], &scenario.run);
        let seed = run.seed;
        let targets = Targets::new(spec.account, spec.accounts, spec.guesses, spec.passwords.clone(), seed);
        Self {
            index,
            tally: Tally::new(),
            targets,
            admissions: Vec::new(),
            lanes: Lanes::new(spec.addresses, replicas),
            walk: NO_WALK,
            uses_up: scenario.policy.strikes_addresses(),
            takes_turns: spec.accounts > 1
                && !scenario.policy.strikes_addresses()
                && !scenario.policy.limits_addresses()
                && scenario.store.as_ref().is_none_or(|store| store.outages.is_empty()),
            rng: Rng::new(seed, u64::from(index) << 1),
            ticks: 0,
            second: 0,
            in_this_second: 0,
            round: 0,
            fresh: 0,
            guesses: 0,
            last_guess: None,
            record: run.record as usize,
            spec: spec.clone(),
        }
    }

    pub(crate) fn start(&self) -> u64 {
        self.spec.start
    }

    pub(crate) fn end(&self) -> u64 {
        self.spec.end
    }

    /// Whether it waits for the limiter and not for a tick.
    pub(crate) fn is_greedy(&self) -> bool {
        matches!(self.spec.pace, Pace::Greedy { .. })
    }

    /// The store failed or came back: whatever was denied before may pass now.
    pub(crate) fn wake(&mut self, replicas: u32) {
        if self.is_greedy() {
            self.lanes = Lanes::new(self.spec.addresses, replicas);
            self.walk = NO_WALK;
            self.targets.wake();
        }
    }

    /// Makes what is due at `now`. Returns when to be asked again; none when there is nothing left to do.
    pub(crate) fn step(&mut self, now: u64, world: &mut World<'_>) -> Option<u64> {
        if now >= self.spec.end {
            return None;
        }
        if self.spec.kind == Attack::Outage && !world.fleet.is_down() {
            return world.fleet.next_outage();
        }
        let next = match self.spec.pace {
            Pace::Greedy { top_speed } => self.grab(now, top_speed, world),
            Pace::Random(rate) => {
                self.tick(now, world)?;
                now.saturating_add(self.rng.gap(mean_gap(&rate)))
            }
            Pace::Steady(rate) => {
                self.tick(now, world)?;
                let elapsed = u128::from(self.ticks) * rate.period().as_micros() / u128::from(rate.count());
                self.spec.start.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX))
            }
        };
        // Also when that is after the end: a store that fails may wake it before.
        Some(next)
    }

    /// One attempt as soon as one may pass.
    fn grab(&mut self, now: u64, top_speed: u32, world: &mut World<'_>) -> u64 {
        if now / SECOND != self.second {
            (self.second, self.in_this_second) = (now / SECOND, 0);
        }
        if self.in_this_second >= top_speed {
            return (self.second + 1) * SECOND;
        }
        if self.takes_turns {
            return self.grab_in_turn(now, world);
        }
        let lane = match self.lanes.take(now) {
            Ok(lane) => lane,
            Err(ready) => return ready,
        };
        let aim = match self.aim(now) {
            Ok(aim) => aim,
            Err(ready) => {
                self.lanes.put_back(lane, now);
                return ready;
            }
        };
        self.in_this_second = self.in_this_second.saturating_add(self.spec.parallel);
        let (admitted, denial) = self.fire(&aim, lane, now, world);
        let Some(denial) = denial else {
            if self.uses_up {
                self.lanes.keep(lane);
            } else {
                self.lanes.put_back(lane, now);
            }
            self.walk = NO_WALK;
            self.conclude(aim, admitted, now, now);
            return now;
        };
        let until = waits_until(&denial, now);
        let has_others = self.spec.accounts > 1 && matches!(aim, Aim::Guess(_));
        let ready = if has_others && denial.by_account {
            self.lanes.put_back(lane, now);
            self.account_waits(&denial, until, world)
        } else if denial.by_address {
            self.lanes.put_back(lane, until);
            None
        } else {
            self.lanes.put_back(lane, now);
            self.lanes.block(lane.replica, until);
            None
        };
        match aim {
            Aim::Guess(target) if admitted == 0 && ready.is_none() => self.targets.hold(target),
            aim => self.conclude(aim, admitted, ready.unwrap_or(now), now),
        }
        now
    }

    /// The same where no way is ever closed to all accounts: each goes on by the way that it used longest ago.
    fn grab_in_turn(&mut self, now: u64, world: &mut World<'_>) -> u64 {
        let target = match self.targets.take(now) {
            Ok(target) => target,
            Err(ready) => return ready,
        };
        self.in_this_second += 1;
        let (guesses, replicas) = (target.guesses, world.fleet.replicas());
        let lane = Lane { replica: guesses % replicas, address: guesses / replicas % self.spec.addresses };
        let (admitted, denial) = self.fire(&Aim::Guess(target), lane, now, world);
        let ready = denial.map_or(now, |denial| waits_until(&denial, now));
        self.conclude(Aim::Guess(target), admitted, ready, now);
        now
    }

    /// Until when one of several accounts waits; none while another way to it may pass.
    fn account_waits(&mut self, denial: &Answer, until: u64, world: &World<'_>) -> Option<u64> {
        let addresses = if denial.by_address { self.spec.addresses } else { 1 };
        let ways = u64::from(addresses) * u64::from(world.fleet.replicas());
        self.walk = (self.walk.0 + 1, self.walk.1.min(until));
        if self.walk.0 < ways {
            return None;
        }
        Some(std::mem::replace(&mut self.walk, NO_WALK).1)
    }

    /// One attempt, or `parallel` at once, whatever was answered before. None when every account was done with.
    fn tick(&mut self, now: u64, world: &mut World<'_>) -> Option<()> {
        let (ways, replicas) = (u64::from(self.spec.addresses), u64::from(world.fleet.replicas()));
        let below = |of: u64| u32::try_from(self.ticks % of).expect("below a number of 32 bits");
        let lane = Lane { replica: below(replicas), address: below(ways) };
        // An account that is put back may be tried at the next tick, so none now is none for ever.
        let aim = self.aim(now).ok()?;
        let (admitted, _) = self.fire(&aim, lane, now, world);
        self.conclude(aim, admitted, now, now);
        self.ticks += 1;
        Some(())
    }

    /// What the next attempt is for.
    fn aim(&mut self, now: u64) -> Result<Aim, u64> {
        match self.spec.kind {
            Attack::KeyFlood { burst, .. } if self.round >= burst => {
                self.fresh = (self.fresh + 1) % OWN;
                Ok(Aim::FreshKey(FRESH + (self.index << 24).wrapping_add(self.fresh) % FRESH))
            }
            Attack::OwnSuccess { every } if self.round >= every => Ok(Aim::OwnLogin),
            _ => self.targets.take(now).map(Aim::Guess),
        }
    }

    /// All attempts of one moment arrive before the first of them is checked.
    fn fire(&mut self, aim: &Aim, lane: Lane, now: u64, world: &mut World<'_>) -> (u32, Option<Answer>) {
        let (account, correct, attempts) = match aim {
            // A right guess goes on as if nobody had noticed, so that what is admitted does not hang on luck. Who
            // tries each pair once does log in.
            Aim::Guess(target) => {
                (target.account, self.spec.kind == Attack::Stuffing && target.opens_next(), self.spec.parallel)
            }
            Aim::FreshKey(account) => (*account, false, 1),
            Aim::OwnLogin => (OWN + self.index, true, 1),
        };
        let request = Request { account, address: self.address(lane.address), correct };
        let who = Who::Attacker(self.index as usize);
        let (mut admitted, mut denial, mut place) = (0, None, None);
        for _ in 0..attempts {
            let (answer, answered) = world.arrive(who, &mut self.tally, lane.replica, &request, now);
            if answer.allowed() {
                admitted += 1;
                place = Some(answered);
            } else {
                denial = Some(answer);
            }
        }
        for _ in 0..admitted {
            if let Some(place) = place {
                world.fleet.verified(place, &request, now);
            }
        }
        (admitted, denial)
    }

    fn conclude(&mut self, aim: Aim, admitted: u32, ready: u64, now: u64) {
        self.round += admitted;
        match aim {
            Aim::Guess(mut target) => {
                if admitted > 0 {
                    self.targets.admit(&mut target, admitted, now);
                    self.guesses += u64::from(admitted);
                    self.last_guess = Some(now);
                    let room = self.record.saturating_sub(self.admissions.len());
                    self.admissions.extend(std::iter::repeat_n(now, room.min(admitted as usize)));
                }
                self.targets.put_back(target, ready);
            }
            Aim::FreshKey(_) => {
                if let Attack::KeyFlood { flood, burst } = self.spec.kind
                    && self.round >= burst + flood
                {
                    self.round = 0;
                }
            }
            Aim::OwnLogin if admitted > 0 => self.round = 0,
            Aim::OwnLogin => {}
        }
    }

    /// The address of a number: IPv4, or within the owned prefix, each attempt another one.
    fn address(&mut self, number: u32) -> IpAddr {
        let Attack::Ipv6Rotation { prefix } = self.spec.kind else {
            return Ipv4Addr::from_bits((self.index + 1) << 24 | number).into();
        };
        let owned = u128::from(0x2a00 + self.index) << 112;
        let bits = self.spec.addresses.ilog2();
        // What stays of a word behind the prefix and the number of the subnet.
        let host = u128::from(self.rng.word()) << 64 | u128::from(self.rng.word());
        let host = host.checked_shr(u32::from(prefix) + bits).unwrap_or(0);
        let subnet = u128::from(number).checked_shl(128 - u32::from(prefix) - bits).unwrap_or(0);
        let within = subnet | host;
        Ipv6Addr::from_bits(owned | within).into()
    }
}

/// One row for each attacker.
pub(crate) fn table(attackers: &[Attacker]) -> Table {
    let mut table = Table::default();
    table.push_texts("kind", attackers.iter().map(|attacker| attacker.spec.kind.name()));
    let mut add = |name: &str, of: &dyn Fn(&Attacker) -> f64| table.push(name, attackers.iter().map(of));
    add("attempts", &|attacker| count(attacker.tally.attempts));
    add("admitted", &|attacker| count(attacker.tally.admitted));
    add("denied", &|attacker| count(attacker.tally.denied));
    add("unavailable", &|attacker| count(attacker.tally.unavailable));
    add("degraded", &|attacker| count(attacker.tally.degraded));
    add("guesses", &|attacker| count(attacker.guesses));
    add("accounts", &|attacker| count(attacker.targets.touched()));
    add("most_a_day", &|attacker| count(attacker.targets.score.most_a_day.into()));
    add("opened", &|attacker| count(attacker.targets.score.opened));
    add("opened_expected", &|attacker| attacker.targets.expected());
    add("first_denied_s", &|attacker| seconds(attacker.tally.first_denied));
    add("first_locked_s", &|attacker| seconds(attacker.tally.first_locked));
    add("last_guess_s", &|attacker| seconds(attacker.last_guess));
    add("wait_p50_s", &|attacker| seconds(attacker.tally.waits.quantile(50)));
    add("wait_p95_s", &|attacker| seconds(attacker.tally.waits.quantile(95)));
    add("wait_max_s", &|attacker| seconds(attacker.tally.waits.max()));
    table
}

/// The first admitted guesses: whose, and when.
pub(crate) fn admissions(attackers: &[Attacker]) -> Table {
    let rows = || {
        attackers.iter().flat_map(|attacker| {
            (1..).zip(&attacker.admissions).map(move |(nth, at): (u64, _)| (attacker.index, nth, *at))
        })
    };
    let mut table = Table::default();
    table.push("attacker", rows().map(|(index, ..)| index.into()));
    table.push("guess", rows().map(|(_, nth, _)| count(nth)));
    table.push("at_s", rows().map(|(.., at)| seconds(Some(at))));
    table
}

/// When an attacker tries again: as told, or a second later when nobody could say.
fn waits_until(answer: &Answer, now: u64) -> u64 {
    match answer.wait {
        Some(wait) => now.saturating_add(wait.max(1)),
        None => now + SECOND,
    }
}
