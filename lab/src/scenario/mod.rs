//! A scenario as plain data: who attacks, who is honest, what defends, and for how long.
//!
//! Read from TOML or JSON by [`Scenario::read`], which judges everything; `docs/lab.md` describes the file.
//! Invariant: a scenario that was read can be run.

mod actors;
mod defence;
mod fields;
mod node;
mod read;

use doorkeep::{OnError, Rate};

use crate::passwords::Passwords;
use crate::policy::Policy;

/// Everything that a run is made of. All times are µs from its start.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// How long, and with which dice.
    pub run: Settings,
    /// The limiter.
    pub policy: Policy,
    /// How many processes ask it: 1 to 64.
    pub replicas: u32,
    /// The store that the replicas share; none, and each counts for itself.
    pub store: Option<Store>,
    /// Who guesses.
    pub attackers: Vec<Attacker>,
    /// Who logs in.
    pub users: Vec<Users>,
}

/// How long, and with which dice.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The length of the run: 1 to 2^48.
    pub duration: u64,
    /// The same seed gives the same result, in every language.
    pub seed: u64,
    /// Rows of the time series: 1 to 10,000.
    pub bins: u32,
    /// How many admissions of each attacker are kept with their times.
    pub record: u32,
}

/// A store, and when it does not answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// What the replicas do meanwhile.
    pub on_error: OnError,
    /// In order, and apart from each other.
    pub outages: Vec<Outage>,
}

/// A time without the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its first moment.
    pub at: u64,
    /// The first moment after it.
    pub until: u64,
    /// Whether the store comes back empty.
    pub forgets: bool,
}

/// How fast an attacker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At once whenever the limiter would admit, but at most so many attempts in any second of the run.
    Greedy {
        /// Attempts in a second.
        top_speed: u32,
    },
    /// At a steady rate, whatever the answers; the n-th tick is at n · period / count.
    Steady(Rate),
    /// As a Poisson stream of that rate, whatever the answers.
    Random(Rate),
}

/// Somebody who guesses.
#[derive(Clone, Debug, PartialEq)]
pub struct Attacker {
    /// What it does.
    pub kind: Attack,
    /// How fast.
    pub pace: Pace,
    /// The first moment.
    pub start: u64,
    /// The first moment after it.
    pub end: u64,
    /// How many addresses it has: 1 to 2^20; of an owned prefix, how many the policy tells apart.
    pub addresses: u32,
    /// The first account that it is after.
    pub account: u32,
    /// How many accounts it is after, from there on.
    pub accounts: u32,
    /// When it leaves an account alone.
    pub guesses: Option<u32>,
    /// How many attempts arrive before the first of them is checked.
    pub parallel: u32,
    /// What it guesses at.
    pub passwords: Passwords,
}

/// What an attacker does.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attack {
    /// One account from one address.
    Vertical,
    /// Many accounts, each guess on all of them before the next guess.
    Spray,
    /// Names and passwords of another site, each pair tried once.
    Stuffing,
    /// Just under what would be noticed.
    LowAndSlow,
    /// One account from many addresses.
    Botnet,
    /// One account from ever new addresses of one owned IPv6 prefix.
    Ipv6Rotation {
        /// Its length: 32 to 128.
        prefix: u8,
    },
    /// A few guesses on one account, then fresh keys until its strikes are forgotten.
    KeyFlood {
        /// Fresh keys in a round.
        flood: u32,
        /// Guesses in a round.
        burst: u32,
    },
    /// Wrong passwords for one account, to keep its owner out.
    Lockout,
    /// One account, with logins to an account of its own between the guesses.
    OwnSuccess {
        /// Guesses between two such logins.
        every: u32,
    },
    /// One account, many guesses at the same moment.
    Race,
    /// One account, only while the store does not answer.
    Outage,
    /// One-time codes of one account.
    Otp,
}

/// People who log in.
#[derive(Clone, Debug, PartialEq)]
pub struct Users {
    /// How they behave.
    pub kind: Habit,
    /// How many they are.
    pub users: u32,
    /// The account of the first; the others follow.
    pub account: u32,
    /// Whether all come from one address.
    pub shared_address: bool,
    /// How often each of them logs in, on average; the times are those of a Poisson stream.
    pub logins: Rate,
    /// The first moment.
    pub start: u64,
    /// The first moment after the last login began.
    pub end: u64,
    /// Passwords that one is ready to type in one login.
    pub tries: u32,
    /// Time between two of them.
    pub pause: u64,
    /// The longest wait that one sits out; a longer one ends the login.
    pub patience: u64,
}

/// How honest people behave.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Habit {
    /// The password is mistyped now and then, and a mistake is often repeated.
    Typo {
        /// The chance of a wrong first try.
        wrong: f64,
        /// The chance that a wrong one is followed by another.
        repeat: f64,
    },
    /// The passwords of other accounts are tried first, now and then.
    WrongAccount {
        /// The chance of that.
        wrong: f64,
        /// At most so many of them, each number as likely.
        others: u32,
    },
    /// A program with an old password saved.
    StaleClient {
        /// Time between its tries.
        every: u64,
    },
    /// Every try is right with the same chance.
    Forgetful {
        /// That chance.
        success: f64,
    },
    /// One try, with the right password, and no second one.
    Poisson,
}
