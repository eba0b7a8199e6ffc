//! Reads attackers and users of a scenario.

use doorkeep::Rate;
use doorkeep::host::input;

use crate::error::{Error, shown};
use crate::passwords::{Counts, Passwords};
use crate::policy::{Policy, Unnoticed};
use crate::rng::mean_gap;
use crate::scenario::fields::{Field, Fields};
use crate::scenario::node::Data;
use crate::scenario::read::{FASTEST, rate};
use crate::scenario::{Attack, Attacker, Habit, Pace, Users};

const ATTACKS: [&str; 12] = [
    "vertical",
    "spray",
    "stuffing",
    "low-and-slow",
    "botnet",
    "ipv6-rotation",
    "key-flood",
    "lockout",
    "own-success",
    "race",
    "outage",
    "otp",
];
const HABITS: [&str; 6] = ["typo", "wrong-account", "stale-client", "forgetful", "poisson", "nat"];
const MOST_ACCOUNTS: u32 = 1 << 24;
const MOST_ADDRESSES: u32 = 1 << 20;
const SECOND: u64 = 1_000_000;

impl Attack {
    /// Its name in a scenario.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Vertical => "vertical",
            Self::Spray => "spray",
            Self::Stuffing => "stuffing",
            Self::LowAndSlow => "low-and-slow",
            Self::Botnet => "botnet",
            Self::Ipv6Rotation { .. } => "ipv6-rotation",
            Self::KeyFlood { .. } => "key-flood",
            Self::Lockout => "lockout",
            Self::OwnSuccess { .. } => "own-success",
            Self::Race => "race",
            Self::Outage => "outage",
            Self::Otp => "otp",
        }
    }
}

impl Habit {
    /// Its name in a scenario; `nat` is `typo` behind one address.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Typo { .. } => "typo",
            Self::WrongAccount { .. } => "wrong-account",
            Self::StaleClient { .. } => "stale-client",
            Self::Forgetful { .. } => "forgetful",
            Self::Poisson => "poisson",
        }
    }
}

/// One attacker; what a kind has no use for is an unknown field.
pub(crate) fn attacker(fields: Fields<'_>, policy: &Policy, duration: u64) -> Result<Attacker, Error> {
    let kind = fields.field("kind");
    let attack = match kind.text()? {
        "vertical" => Attack::Vertical,
        "spray" => Attack::Spray,
        "stuffing" => Attack::Stuffing,
        "low-and-slow" => Attack::LowAndSlow,
        "botnet" => Attack::Botnet,
        "ipv6-rotation" => Attack::Ipv6Rotation { prefix: fields.field("prefix").prefix()? },
        "key-flood" => flood(&fields, policy)?,
        "lockout" => Attack::Lockout,
        "own-success" => Attack::OwnSuccess { every: fields.field("every").whole(1..=1_000_000, 4)? },
        "race" => Attack::Race,
        "outage" => Attack::Outage,
        "otp" => Attack::Otp,
        unknown => return Err(unknown_kind(&kind, "attacker", &ATTACKS, unknown)),
    };
    let (pace, parallel) = speed(&fields, attack, policy)?;
    let has_many_accounts = matches!(attack, Attack::Spray | Attack::Stuffing);
    let accounts = fields.field_if("accounts", has_many_accounts, |field| field.whole(1..=MOST_ACCOUNTS, 1000), 1)?;
    let has_addresses = !matches!(attack, Attack::Ipv6Rotation { .. });
    let default = if attack == Attack::Botnet { 100 } else { 1 };
    let subnets = match attack {
        // An attacker who knows the policy: as many addresses as it tells apart, as far as one uses them.
        Attack::Ipv6Rotation { prefix } => {
            (1 << policy.ipv6_prefix().saturating_sub(prefix).min(20)).min(MOST_ADDRESSES)
        }
        _ => 1,
    };
    let addresses =
        fields.field_if("addresses", has_addresses, |field| field.whole(1..=MOST_ADDRESSES, default), subnets)?;
    let account = fields.field("account").whole(0..=MOST_ACCOUNTS, 0)?;
    let guesses = fields.field("guesses");
    let guesses = match attack {
        Attack::Stuffing if guesses.node.is_some() => return Err(guesses.error("each pair is tried once")),
        Attack::Stuffing => Some(1),
        _ => guesses.node.map(|_| guesses.whole(1..=u32::MAX, 1)).transpose()?,
    };
    let passwords = passwords(&fields, attack)?;
    let start = starts(&fields, duration)?;
    let end = fields.field("end").time(duration)?;
    if start >= end {
        return Err(fields.place.error("start must be before end"));
    }
    fields.finish()?;
    Ok(Attacker { kind: attack, pace, start, end, addresses, account, accounts, guesses, parallel, passwords })
}

/// The rate and how many attempts arrive at once.
fn speed(fields: &Fields<'_>, attack: Attack, policy: &Policy) -> Result<(Pace, u32), Error> {
    let parallel = fields.field_if("parallel", attack == Attack::Race, |field| field.whole(1..=1_000_000, 100), 1)?;
    if attack == Attack::LowAndSlow {
        let alone = "a single attempt locks the account, so nothing goes unnoticed";
        let Unnoticed { attempts, every } = policy.unnoticed().ok_or_else(|| fields.place.error(alone))?;
        let rate = Rate::new(1, std::time::Duration::from_micros(every)).map_err(|error| fields.place.error(error))?;
        return Ok((Pace::Steady(rate), attempts));
    }
    let (field, top_speed) = (fields.field("rate"), fields.field("top_speed"));
    let default = if attack == Attack::Lockout { "1/1s" } else { "greedy" };
    let greedy = Pace::Greedy { top_speed: top_speed.whole(1..=1_000_000, 10_000)? };
    let pace = match field.node.map(|node| &node.data) {
        Some(Data::Text(text)) if text == "greedy" => greedy,
        None if default == "greedy" => greedy,
        None => Pace::Steady(Rate::new(1, std::time::Duration::from_secs(1))?),
        Some(_) => Pace::Steady(rate(&field)?),
    };
    let random = fields.field("random");
    let pace = match pace {
        Pace::Steady(rate) if random.truth()? => Pace::Random(rate),
        Pace::Greedy { .. } if random.truth()? => {
            return Err(random.error("only an attacker with a rate comes at random"));
        }
        pace => pace,
    };
    if !matches!(pace, Pace::Greedy { .. }) && top_speed.node.is_some() {
        return Err(top_speed.error("only a greedy attacker has a top speed"));
    }
    Ok((pace, parallel))
}

fn flood(fields: &Fields<'_>, policy: &Policy) -> Result<Attack, Error> {
    let capacity = u32::try_from(policy.capacity()).unwrap_or(u32::MAX);
    let unlocked = policy.threshold().map_or(1, |threshold| threshold.saturating_sub(1).max(1));
    Ok(Attack::KeyFlood {
        flood: fields.field("flood").whole(1..=1 << 30, capacity)?,
        burst: fields.field("burst").whole(1..=1_000_000, unlocked)?,
    })
}

/// `head`, `{ bits = 20 }`, `{ counts = [..] }`; pairs have `hit_rate`, codes `digits` and `valid`.
fn passwords(fields: &Fields<'_>, attack: Attack) -> Result<Passwords, Error> {
    match attack {
        Attack::Stuffing => return Ok(Passwords::Reused(fields.field("hit_rate").chance(0.001)?)),
        Attack::Otp => {
            let digits = fields.field("digits").whole(1..=12, 6)?;
            let valid = fields.field("valid");
            let codes = 10_u64.pow(digits).min(u64::from(u32::MAX));
            let most = u32::try_from(codes).expect("bounded just above");
            let valid = valid.whole(1..=most, 3)?;
            return Ok(Passwords::Codes { digits: u8::try_from(digits).expect("at most 12"), valid });
        }
        _ => {}
    }
    let field = fields.field("passwords");
    match field.node.map(|node| &node.data) {
        None => Ok(Passwords::Head),
        Some(Data::Text(text)) if text == "head" => Ok(Passwords::Head),
        Some(Data::Table(_)) => {
            let model = field.table()?.expect("it is one");
            let (bits, counts) = (model.field("bits"), model.field("counts"));
            let passwords = match (bits.node, counts.node) {
                (Some(_), None) => Passwords::Bits(u8::try_from(bits.whole(1..=128, 1)?).expect("at most 128")),
                (None, Some(_)) => Passwords::Counts(counts.counts()?),
                _ => return Err(field.place.error("must hold either bits or counts")),
            };
            model.finish().map(|()| passwords)
        }
        Some(_) => Err(field.error("must be \"head\", { bits = .. } or { counts = [..] }")),
    }
}

/// One group of users.
pub(crate) fn users(fields: Fields<'_>, duration: u64) -> Result<Users, Error> {
    let kind = fields.field("kind");
    let name = kind.text()?;
    let habit = match name {
        "typo" | "nat" => Habit::Typo {
            wrong: fields.field("wrong").chance(0.02)?,
            repeat: fields.field("repeat").chance(2.0 / 3.0)?,
        },
        "wrong-account" => Habit::WrongAccount {
            wrong: fields.field("wrong").chance(0.1)?,
            others: fields.field("others").whole(1..=100, 3)?,
        },
        "stale-client" => {
            let every = fields.field("every");
            Habit::StaleClient { every: every.node.map_or(Ok(300 * SECOND), |_| every.lasting())? }
        }
        "forgetful" => Habit::Forgetful { success: fields.field("success").chance(0.23)? },
        "poisson" => Habit::Poisson,
        unknown => return Err(unknown_kind(&kind, "kind of users", &HABITS, unknown)),
    };
    let is_nat = name == "nat";
    let users = fields.field("users").whole(1..=MOST_ACCOUNTS, if is_nat { 50 } else { 1 })?;
    if matches!(habit, Habit::StaleClient { every } if every < u64::from(users)) {
        let message = format_args!("all users together must try at most {FASTEST} times a second");
        return Err(fields.field("every").error(message));
    }
    let comes_back = matches!(habit, Habit::Typo { .. } | Habit::WrongAccount { .. } | Habit::Forgetful { .. });
    let logins = fields.field("logins");
    let is_stale = matches!(habit, Habit::StaleClient { .. });
    let logins = match logins.node {
        Some(_) if is_stale => return Err(logins.error("a stale client has every, not logins")),
        Some(_) => {
            let rate = rate(&logins)?;
            if mean_gap(&rate) < f64::from(users) {
                return Err(
                    logins.error(format_args!("all users together must log in at most {FASTEST} times a second"))
                );
            }
            rate
        }
        None => Rate::new(1, std::time::Duration::from_secs(86_400))?,
    };
    let shared = fields.field("shared_address");
    let shared_address = if is_nat && shared.node.is_none() { true } else { shared.truth()? };
    let account = fields.field("account").whole(0..=MOST_ACCOUNTS, 0)?;
    let tries = fields.field_if("tries", comes_back, |field| field.whole(1..=1_000_000, 10), 1)?;
    let pause = fields.field_if("pause", comes_back, |field| field.time(10 * SECOND), 0)?;
    let patience = fields.field_if("patience", comes_back, |field| field.time(0), 0)?;
    let start = starts(&fields, duration)?;
    // Whoever saved an old password notices after a day.
    let default = if is_stale { start.saturating_add(86_400 * SECOND).min(duration) } else { duration };
    let end = fields.field("end").time(default)?;
    if start >= end {
        return Err(fields.place.error("start must be before end"));
    }
    fields.finish()?;
    Ok(Users { kind: habit, users, account, shared_address, logins, start, end, tries, pause, patience })
}

/// When an actor begins.
fn starts(fields: &Fields<'_>, duration: u64) -> Result<u64, Error> {
    let field = fields.field("start");
    let start = field.time(0)?;
    if start < duration { Ok(start) } else { Err(field.error("must be before the run ends")) }
}

impl<'a> Fields<'a> {
    /// A field that only some kinds have; the others do not know it.
    fn field_if<T>(
        &self,
        name: &'static str,
        applies: bool,
        read: impl FnOnce(&Field<'a>) -> Result<T, Error>,
        otherwise: T,
    ) -> Result<T, Error> {
        if applies { read(&self.field(name)) } else { Ok(otherwise) }
    }
}

impl Field<'_> {
    fn prefix(&self) -> Result<u8, Error> {
        if self.node.is_none() { Ok(48) } else { self.judged(input::ipv6_prefix) }
    }

    fn counts(&self) -> Result<Counts, Error> {
        let refused = || self.place.error("must be whole numbers from 0, not all 0");
        let count = |data: &Data| match data {
            Data::Integer(count) => u64::try_from(*count).map_err(|_| refused()),
            _ => Err(refused()),
        };
        let counts: Vec<u64> = self.list()?.iter().map(|node| count(&node.data)).collect::<Result<_, _>>()?;
        Counts::new(&counts).ok_or_else(refused)
    }
}

fn unknown_kind(field: &Field<'_>, what: &str, known: &[&str], unknown: &str) -> Error {
    field.place.error(format!("unknown {what}, use {}, value=`{}`", known.join(", "), shown(unknown)))
}
