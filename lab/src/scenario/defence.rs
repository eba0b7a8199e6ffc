//! Reads the policy of a scenario and the store behind it.

use doorkeep::host::input;
use doorkeep::{Rates, Rule, Strikes, presets};

use crate::error::{Error, shown};
use crate::policy::{By, Policy, Rules};
use crate::scenario::fields::{Field, Fields, Place};
use crate::scenario::node::{Data, Node};
use crate::scenario::{Outage, Store};

const PRESET: &str = "preset:";
const KINDS: [&str; 4] = ["rules", "attempt_limiter", "token_bucket", "fixed_window"];

/// The policy and the number of replicas.
pub(crate) fn policy(fields: Fields<'_>) -> Result<(Policy, u32), Error> {
    let given: Vec<&str> = KINDS.into_iter().filter(|kind| fields.has(kind)).collect();
    let [kind] = given[..] else {
        let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
        return Err(fields.place.error(format!("must hold one of {}, found {found}", KINDS.join(", "))));
    };
    let policy = match kind {
        "rules" => Policy::Rules(rules(&fields)?),
        "attempt_limiter" => attempt_limiter(single(&fields, "attempt_limiter")?)?,
        "token_bucket" => token_bucket(single(&fields, "token_bucket")?)?,
        _ => fixed_window(single(&fields, "fixed_window")?)?,
    };
    let replicas = fields.field("replicas").whole(1..=64, 1)?;
    let place = fields.place.clone();
    let rehearsals = if let Policy::Rules(rules) = &policy { one_by_one(rules, &fields) } else { Vec::new() };
    fields.finish()?;
    // Makes one, so that what the limiter itself refuses is refused here, with its own words.
    for (place, rules) in rehearsals {
        Policy::Rules(rules).subject().map_err(|error| place.error(error))?;
    }
    policy.subject().map_err(|error| place.error(error))?;
    Ok((policy, replicas))
}

/// The rules alone, then with each thing that a success does to them, so that what is refused is known by its field.
fn one_by_one(rules: &Rules, fields: &Fields<'_>) -> Vec<(Place, Rules)> {
    let alone = Rules { forgive: Vec::new(), give_back: Vec::new(), forgive_address: Vec::new(), ..rules.clone() };
    let at = |name| fields.field(name).place;
    vec![
        (fields.place.clone(), alone.clone()),
        (at("forgive"), Rules { forgive: rules.forgive.clone(), ..alone.clone() }),
        (at("give_back"), Rules { give_back: rules.give_back.clone(), ..alone.clone() }),
        (at("forgive_address"), Rules { forgive_address: rules.forgive_address.clone(), ..alone }),
    ]
}

/// The store; none when the replicas share nothing.
pub(crate) fn store(fields: Fields<'_>, duration: u64) -> Result<Store, Error> {
    let on_error = fields.field("on_error").judged(input::on_error)?.unwrap_or_default();
    let field = fields.field("outages");
    let mut outages: Vec<Outage> = Vec::new();
    for outage in field.tables()? {
        let at = outage.field("at").time(0)?;
        let lasts = outage.field("duration");
        if lasts.node.is_none() {
            return Err(lasts.place.error("is required"));
        }
        let until = at.saturating_add(lasts.time(0)?);
        let forgets = outage.field("forgets").truth()?;
        let place = outage.place.clone();
        outage.finish()?;
        if outages.last().is_some_and(|last| at <= last.until) {
            return Err(place.error("outages must follow each other with time between them"));
        }
        if at >= duration {
            return Err(place.error("an outage must begin before the run ends"));
        }
        if until == at {
            return Err(lasts.error("an outage must last"));
        }
        outages.push(Outage { at, until, forgets });
    }
    fields.finish()?;
    Ok(Store { on_error, outages })
}

fn rules(fields: &Fields<'_>) -> Result<Rules, Error> {
    let field = fields.field("rules");
    let mut rules: Vec<Rule> = Vec::new();
    for (at, node) in field.list()?.iter().enumerate() {
        let rule = rule(node, format!("{}[{at}]", "policy.rules"))?;
        if rules.iter().any(|other| other.name() == rule.name()) {
            return Err(field.place.error(format!("a rule stands twice, rule=`{}`", rule.name())));
        }
        rules.push(rule);
    }
    if rules.is_empty() {
        return Err(field.place.error("must name at least one rule"));
    }
    Ok(Rules {
        rules,
        capacity: fields.field("capacity").judged(input::capacity)?,
        forgive: fields.field("forgive").texts()?,
        give_back: fields.field("give_back").texts()?,
        forgive_address: fields.field("forgive_address").texts()?,
    })
}

/// `preset:NAME`, or a table.
fn rule(node: &Node, path: String) -> Result<Rule, Error> {
    if let Data::Text(text) = &node.data {
        let list = Node { data: Data::Table(vec![("preset".to_owned(), node.clone())]), line: node.line };
        let fields = Fields::of(&list, path)?;
        let preset =
            text.strip_prefix(PRESET).and_then(|name| presets::all().into_iter().find(|rule| rule.name() == name));
        return preset.ok_or_else(|| {
            let known: Vec<String> = presets::all().iter().map(|rule| format!("{PRESET}{}", rule.name())).collect();
            fields.place.error(format!("unknown preset, use {}, value=`{}`", known.join(", "), shown(text)))
        });
    }
    let fields = Fields::of(node, path)?;
    let name = fields.field("name").text()?;
    let (rates, strikes) = (fields.field("rates"), fields.field("strikes"));
    let made = match (rates.node, strikes.node) {
        (Some(_), None) => {
            let rates: Rates = rates.text()?.parse().map_err(|error| rates.place.error(error))?;
            Rule::new(name, rates)
        }
        (None, Some(_)) => {
            let window = fields.field("window").judged_duration(input::lockout_window)?;
            Rule::strikes(name, strikes.judged(input::threshold)?, window)
        }
        _ => return Err(fields.place.error("a rule takes either rates, or strikes and window")),
    };
    let by = fields.field("by").texts()?;
    let prefix = fields.field("ipv6_prefix").judged(input::ipv6_prefix)?;
    let place = fields.place.clone();
    fields.finish()?;
    let words: Vec<&str> = by.iter().map(String::as_str).collect();
    if words.is_empty() {
        return Err(place.error("by must say what the rule is keyed by, such as [\"account\", \"address\"]"));
    }
    made.and_then(|rule| rule.with_by(&words)?.with_ipv6_prefix(prefix)).map_err(|error| place.error(error))
}

fn single<'a>(fields: &Fields<'a>, name: &'static str) -> Result<Fields<'a>, Error> {
    Ok(fields.field(name).table()?.expect("it was found"))
}

fn attempt_limiter(fields: Fields<'_>) -> Result<Policy, Error> {
    let policy = Policy::AttemptLimiter {
        strikes: Strikes {
            threshold: fields.field("threshold").judged(input::threshold)?,
            lockout_window: fields.field("lockout_window").judged_duration(input::lockout_window)?,
            max_tracked_keys: fields.field("max_tracked_keys").judged(input::max_tracked_keys)?,
        },
        by: by(&fields.field("by"))?,
        forgive: fields.field("forgive").truth()?,
        give_back: fields.field("give_back").truth()?,
    };
    fields.finish().map(|()| policy)
}

fn token_bucket(fields: Fields<'_>) -> Result<Policy, Error> {
    let policy = Policy::TokenBucket {
        rate: fields.field("rate").judged(input::bucket_rate)?,
        window: fields.field("window").judged_duration(input::bucket_window)?,
        capacity: fields.field("capacity").judged(input::bucket_capacity)?,
        by: by(&fields.field("by"))?,
        forgive: fields.field("forgive").truth()?,
    };
    fields.finish().map(|()| policy)
}

fn fixed_window(fields: Fields<'_>) -> Result<Policy, Error> {
    let policy = Policy::FixedWindow {
        limit: fields.field("limit").judged(input::limit)?,
        window: fields.field("window").judged_duration(input::window)?,
        max_keys: fields.field("max_keys").judged(input::max_keys)?,
        by: by(&fields.field("by"))?,
        forgive: fields.field("forgive").truth()?,
    };
    fields.finish().map(|()| policy)
}

/// What the key of a single-key limiter is made of; the account, if nothing is said.
fn by(field: &Field<'_>) -> Result<By, Error> {
    match field.node {
        None => Ok(By { account: true, address: false }),
        Some(_) => match By::of(&field.texts()?) {
            By { account: false, address: false } => Err(field.place.error("must name at least one word")),
            by => Ok(by),
        },
    }
}
