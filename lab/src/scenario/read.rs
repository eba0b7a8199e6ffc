//! Reads a whole scenario, and refuses what cannot be run.

use doorkeep::host::input::Value;
use doorkeep::{Rate, Rates};

use crate::error::Error;
use crate::rng::mean_gap;
use crate::scenario::fields::{Field, Fields};
use crate::scenario::node::Node;
use crate::scenario::{Attack, Scenario, Settings, actors, defence};

const MOST_ACTORS: usize = 100;

impl Scenario {
    /// Reads a scenario from TOML, or from JSON if the text begins with a brace.
    ///
    /// ```
    /// use doorkeep_lab::Scenario;
    ///
    /// let error = Scenario::read("[policy]\nrules = [\"preset:login-ip\"]\n[[attackers]]\nkind = \"wizard\"").unwrap_err();
    /// assert!(error.to_string().starts_with("scenario line 4, attackers[0].kind: unknown attacker, use vertical,"));
    /// ```
    ///
    /// # Errors
    /// The text is not TOML or JSON, a field is unknown or out of its bounds, or the parts do not fit together. The
    /// message names the line and the field.
    pub fn read(text: &str) -> Result<Self, Error> {
        let node = Node::parse(text)?;
        let fields = Fields::of(&node, "")?;
        let run = settings(fields.field("run").table()?)?;
        let policy = fields.field("policy");
        let Some(policy) = policy.table()? else { return Err(policy.place.error("is required")) };
        let (policy, replicas) = defence::policy(policy)?;
        let store = fields.field("store").table()?;
        let store = store.map(|store| defence::store(store, run.duration)).transpose()?;
        let attackers = fields.field("attackers");
        let has_outages = store.as_ref().is_some_and(|store| !store.outages.is_empty());
        let mut guesses = Vec::new();
        for attacker in attackers.tables()? {
            let place = attacker.place.clone();
            let attacker = actors::attacker(attacker, &policy, run.duration)?;
            if attacker.kind == Attack::Outage && !has_outages {
                return Err(place.error("an attack during an outage needs store.outages"));
            }
            guesses.push(attacker);
        }
        let users = fields.field("users");
        let people = users.tables()?.into_iter().map(|group| actors::users(group, run.duration));
        let people = people.collect::<Result<Vec<_>, Error>>()?;
        for (field, count) in [(&attackers, guesses.len()), (&users, people.len())] {
            if count > MOST_ACTORS {
                return Err(field.place.error(format!("at most {MOST_ACTORS} tables, found {count}")));
            }
        }
        if guesses.is_empty() && people.is_empty() {
            return Err(fields.place.error("nobody attacks and nobody logs in, add attackers or users"));
        }
        fields.finish()?;
        Ok(Self { run, policy, replicas, store, attackers: guesses, users: people })
    }

    /// A scenario that can be run, in either form, as JSON text: hosts change a field there and read it again.
    ///
    /// ```
    /// let text = "policy.rules = [\"preset:vault\"]\nattackers = [{ kind = \"vertical\" }]";
    /// assert_eq!(
    ///     doorkeep_lab::Scenario::json(text)?,
    ///     r#"{"attackers":[{"kind":"vertical"}],"policy":{"rules":["preset:vault"]}}"#,
    /// );
    /// # Ok::<(), doorkeep_lab::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Scenario::read`].
    pub fn json(text: &str) -> Result<String, Error> {
        Self::read(text)?;
        Ok(Node::parse(text)?.to_json().to_string())
    }
}

fn settings(fields: Option<Fields<'_>>) -> Result<Settings, Error> {
    let defaults = Settings { duration: 24 * 3600 * 1_000_000, seed: 1, bins: 96, record: 0 };
    let Some(fields) = fields else { return Ok(defaults) };
    let duration = fields.field("duration");
    let settings = Settings {
        duration: match duration.node {
            None => defaults.duration,
            Some(_) => duration.lasting()?,
        },
        seed: seed(&fields.field("seed"), defaults.seed)?,
        bins: fields.field("bins").whole(1..=10_000, defaults.bins)?,
        record: fields.field("record").whole(0..=1_000_000, defaults.record)?,
    };
    fields.finish().map(|()| settings)
}

/// Up to 2^53, which every language holds exactly.
fn seed(field: &Field<'_>, default: u64) -> Result<u64, Error> {
    match field.value() {
        Value::Missing => Ok(default),
        Value::Integer(number) if (0..=1 << 53).contains(&number) => Ok(u64::try_from(number).expect("in bounds")),
        _ => Err(field.error("must be a whole number from 0 to 2^53")),
    }
}

/// At most so many a second, so that a run gets on: a clock of whole microseconds has no more moments.
pub(crate) const FASTEST: u32 = 1_000_000;

/// `10/1s`, or a number a second.
pub(crate) fn rate(field: &Field<'_>) -> Result<Rate, Error> {
    let rate = any_rate(field)?;
    if mean_gap(&rate) < 1.0 {
        return Err(field.error(format_args!("must be at most {FASTEST} a second")));
    }
    Ok(rate)
}

fn any_rate(field: &Field<'_>) -> Result<Rate, Error> {
    let refused = || field.error("must read like 10/1s, or be a number a second above 0");
    match field.value() {
        Value::Text(text) => {
            let rates: Rates = text.parse().map_err(|error| field.place.error(error))?;
            let mut all = rates.iter();
            all.next().filter(|_| all.len() == 0).copied().ok_or_else(refused)
        }
        Value::Integer(number) => {
            let count = u32::try_from(number).map_err(|_| refused())?;
            Rate::new(count, std::time::Duration::from_secs(1)).map_err(|_| refused())
        }
        Value::Float(number) if number.is_finite() && number > 0.0 => {
            let period = std::time::Duration::try_from_secs_f64(1.0 / number).map_err(|_| refused())?;
            let micros = u64::try_from(period.as_micros()).map_err(|_| refused())?;
            Rate::new(1, std::time::Duration::from_micros(micros)).map_err(|_| refused())
        }
        _ => Err(refused()),
    }
}
