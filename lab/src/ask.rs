//! The closed forms by name, as hosts ask for them: every bound, default and error text of their arguments.

use std::cell::RefCell;
use std::time::Duration;

use doorkeep::host::input::{self, Unit, Value};
use doorkeep::{Rate, Rates, Rule};

use crate::bounds;
use crate::columns::{Table, count};
use crate::error::{Error, shown};
use crate::passwords::Passwords;

const SPANS: [(&str, u64); 8] = [
    ("1m", 60),
    ("10m", 600),
    ("1h", 3600),
    ("6h", 21_600),
    ("24h", 86_400),
    ("7d", 604_800),
    ("30d", 2_592_000),
    ("365d", 31_536_000),
];
const NAMES: [&str; 10] = [
    "max_in",
    "unnoticed",
    "admitted_at",
    "botnet",
    "stuffing",
    "key_flood",
    "honest_denial",
    "codes",
    "replicas",
    "opened",
];

/// A policy as it stands in the names of keys: `5/1m,50/1h`, `s5/15m` (strikes) or `w100/1m` (fixed window).
enum Policy {
    Rates(Rates),
    Strikes { threshold: u32, window: Duration },
    FixedWindow { limit: u32, window: Duration },
}

/// What a policy admits in spans from a minute to a year: `span`, `span_s`, `admitted` to a greedy attacker, and
/// `unnoticed` to one that is never denied.
///
/// ```
/// let table = doorkeep_lab::bounds_of("s5/15m")?;
/// assert_eq!(table.numbers("admitted").map(|admitted| admitted[4]), Some(480.0));
/// assert_eq!(table.numbers("unnoticed").map(|unnoticed| unnoticed[4]), Some(384.0));
/// # Ok::<(), doorkeep_lab::Error>(())
/// ```
///
/// # Errors
/// The text is no policy.
pub fn bounds_of(policy: &str) -> Result<Table, Error> {
    let policy = Policy::read(policy)?;
    let spans = || SPANS.iter().map(|(_, seconds)| Duration::from_secs(*seconds));
    let mut table = Table::default();
    table.push_texts("span", SPANS.iter().map(|(name, _)| *name));
    table.push("span_s", SPANS.iter().map(|(_, seconds)| count(*seconds)));
    table.push("admitted", spans().map(|span| count(policy.max_in(span))));
    table.push("unnoticed", spans().map(|span| count(policy.unnoticed(span))));
    Ok(table)
}

/// One closed form of [`bounds`] by its name. Durations are texts or numbers of `unit`, in which they also come out.
///
/// ```
/// use doorkeep::host::input::{Unit, Value};
///
/// let arguments = [("policy", Value::Text("5/1m")), ("span", Value::Text("24h"))];
/// assert_eq!(doorkeep_lab::bound("max_in", &arguments, Unit::Seconds)?, 7204.0);
/// # Ok::<(), doorkeep_lab::Error>(())
/// ```
///
/// # Errors
/// The name is unknown, or an argument is unknown, missing or out of its bounds.
pub fn bound(name: &str, arguments: &[(&str, Value<'_>)], unit: Unit) -> Result<f64, Error> {
    let given = Arguments { given: arguments, unit, asked: RefCell::default() };
    let answer = answer(name, &given)?;
    let asked = given.asked.into_inner();
    match arguments.iter().find(|(name, _)| !asked.contains(name)) {
        None => Ok(answer),
        Some((unknown, _)) => {
            Err(Error::config(format!("unknown argument, use {}, argument=`{}`", asked.join(", "), shown(unknown))))
        }
    }
}

fn answer(name: &str, given: &Arguments<'_>) -> Result<f64, Error> {
    let lasts = |duration: Duration| {
        count(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)) / f64::from(given.unit.micros())
    };
    Ok(match name {
        "max_in" => count(given.policy("policy")?.max_in(given.span()?)),
        "unnoticed" => count(given.policy("policy")?.unnoticed(given.span()?)),
        "admitted_at" => lasts(bounds::admitted_at(&given.rates("rates")?, given.whole("guess", 1, u64::MAX >> 11)?)),
        "botnet" => count(bounds::botnet(
            &given.rates("account_and_address")?,
            &given.rates("account")?,
            given.whole("addresses", 1, 1 << 32)?,
            given.span()?,
        )),
        "stuffing" => {
            let pairs = given.whole("pairs", 1, 1 << 40)?;
            lasts(bounds::stuffing(&given.rates("address")?, pairs, given.whole("addresses", 1, 1 << 32)?))
        }
        "key_flood" => {
            let threshold = input::threshold(given.value("threshold"))?;
            let capacity = given.capacity()?;
            let flood = given.rate("rate")?;
            count(bounds::key_flood(threshold, capacity, (flood.count(), flood.period()), given.span()?))
        }
        "honest_denial" => bounds::honest_denial(given.small("burst", 1, 10_000)?, given.load()?),
        "codes" => bounds::codes(
            u8::try_from(given.small("digits", 1, 12)?).expect("at most 12"),
            given.small("valid", 1, 10)?,
            given.whole("guesses", 0, 1 << 53)?,
        ),
        "replicas" => {
            let ideal = given.policy("policy")?.max_in(given.span()?);
            count(bounds::replicas(given.small("replicas", 1, 1_000_000)?, ideal))
        }
        "opened" => {
            let guesses = given.whole("guesses", 0, 1 << 53)?;
            match given.value("bits") {
                Value::Missing => Passwords::Head.opened(guesses),
                _ => Passwords::Bits(u8::try_from(given.small("bits", 1, 128)?).expect("at most 128")).opened(guesses),
            }
        }
        _ => return Err(Error::config(format!("unknown bound, use {}, name=`{}`", NAMES.join(", "), shown(name)))),
    })
}

struct Arguments<'a> {
    given: &'a [(&'a str, Value<'a>)],
    unit: Unit,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Arguments<'a> {
    fn value(&self, name: &'static str) -> Value<'a> {
        self.asked.borrow_mut().push(name);
        self.given.iter().find(|(own, _)| *own == name).map_or(Value::Missing, |(_, value)| *value)
    }

    fn text(&self, name: &'static str) -> Result<&'a str, Error> {
        match self.value(name) {
            Value::Text(text) => Ok(text),
            Value::Missing => Err(Error::config(format!("{name} is required"))),
            value => Err(Error::config(format!("{name} must be a text, value=`{value}`"))),
        }
    }

    fn whole(&self, name: &'static str, low: u64, high: u64) -> Result<u64, Error> {
        Ok(input::whole_number(name, low..=high, self.value(name))?)
    }

    fn small(&self, name: &'static str, low: u32, high: u32) -> Result<u32, Error> {
        let number = self.whole(name, low.into(), high.into())?;
        Ok(u32::try_from(number).expect("the bounds fit the type"))
    }

    /// Like a limiter's, but without a default: a bound is about one capacity.
    fn capacity(&self) -> Result<u64, Error> {
        match self.value("capacity") {
            Value::Missing => Err(Error::config("capacity is required")),
            given => Ok(input::capacity(given)? as u64),
        }
    }

    fn span(&self) -> Result<Duration, Error> {
        Ok(input::span(self.value("span"), self.unit)?)
    }

    fn rates(&self, name: &'static str) -> Result<Rates, Error> {
        Ok(self.text(name)?.parse()?)
    }

    fn rate(&self, name: &'static str) -> Result<Rate, Error> {
        let text = self.text(name)?;
        let rates: Rates = text.parse()?;
        let one = rates.iter().next().filter(|_| rates.iter().len() == 1).copied();
        one.ok_or_else(|| Error::config(format!("{name} must be one rate, {name}=`{}`", shown(text))))
    }

    fn policy(&self, name: &'static str) -> Result<Policy, Error> {
        Policy::read(self.text(name)?)
    }

    /// Arrivals in an interval: any number from 0.
    fn load(&self) -> Result<f64, Error> {
        #[allow(clippy::cast_precision_loss, reason = "a load is no exact count")]
        let load = match self.value("load") {
            Value::Integer(load) => Some(load as f64),
            Value::Float(load) => Some(load),
            _ => None,
        };
        let load = load.filter(|load| (0.0..=1e6).contains(load));
        load.ok_or_else(|| Error::config("load must be a number from 0 to 1000000"))
    }
}

impl Policy {
    fn read(text: &str) -> Result<Self, Error> {
        let of_one = |text: &str| -> Result<Rate, Error> {
            let rates: Rates = text.parse()?;
            let one = rates.iter().next().filter(|_| rates.iter().len() == 1).copied();
            one.ok_or_else(|| {
                Error::config(format!("strikes and fixed windows have one rate, policy=`{}`", shown(text)))
            })
        };
        if let Some(strikes) = text.strip_prefix('s') {
            let strikes = of_one(strikes)?;
            // A rule, so that its bounds are those of rules.
            Rule::strikes("policy", strikes.count(), strikes.period())?;
            return Ok(Self::Strikes { threshold: strikes.count(), window: strikes.period() });
        }
        if let Some(window) = text.strip_prefix('w') {
            let window = of_one(window)?;
            return Ok(Self::FixedWindow { limit: window.count(), window: window.period() });
        }
        Ok(Self::Rates(text.parse()?))
    }

    fn max_in(&self, span: Duration) -> u64 {
        match self {
            Self::Rates(rates) => rates.max_in(span),
            Self::Strikes { threshold, window } => bounds::strikes(*threshold, *window, span),
            Self::FixedWindow { limit, window } => bounds::fixed_window(*limit, *window, span),
        }
    }

    /// Rates and fixed windows deny nobody who knows them.
    fn unnoticed(&self, span: Duration) -> u64 {
        match self {
            Self::Strikes { threshold, window } => bounds::strikes_unnoticed(*threshold, *window, span),
            _ => self.max_in(span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, arguments: &[(&str, Value<'_>)]) -> Result<f64, String> {
        bound(name, arguments, Unit::Seconds).map_err(|error| error.to_string())
    }

    #[test]
    fn every_closed_form_can_be_asked_for() {
        let (text, whole) = (Value::Text, |number: u32| Value::Integer(number.into()));
        let day = ("span", Value::Text("24h"));
        assert_eq!(ask("max_in", &[("policy", text("w100/1m")), day]), Ok(144_000.0));
        assert_eq!(ask("unnoticed", &[("policy", text("s5/15m")), ("span", whole(86_400))]), Ok(384.0));
        assert_eq!(ask("admitted_at", &[("rates", text("5/1m")), ("guess", whole(6))]), Ok(12.0));
        let botnet =
            [("account_and_address", text("5/1m,20/1h")), ("account", text("100/1h")), ("addresses", whole(5)), day];
        assert_eq!(ask("botnet", &botnet), Ok(2495.0));
        let stuffing = [("address", text("200/1h")), ("pairs", whole(1_000_000)), ("addresses", whole(100))];
        assert_eq!(ask("stuffing", &stuffing), Ok(49.0 * 3600.0));
        let flood =
            [("threshold", whole(5)), ("capacity", whole(2000)), ("rate", text("100/1s")), ("span", text("6h"))];
        assert_eq!(ask("key_flood", &flood), Ok(4312.0));
        assert_eq!(ask("honest_denial", &[("burst", whole(1)), ("load", Value::Float(1.0))]), Ok(0.5));
        let codes = [("digits", whole(1)), ("valid", whole(5)), ("guesses", whole(1))];
        assert_eq!(ask("codes", &codes), Ok(0.5));
        assert_eq!(ask("replicas", &[("policy", text("5/1m")), ("replicas", whole(4)), day]), Ok(28_816.0));
        assert_eq!(ask("opened", &[("guesses", whole(1))]), Ok(0.00892));
        assert_eq!(ask("opened", &[("guesses", whole(1)), ("bits", whole(2))]), Ok(0.25));
    }

    #[test]
    fn what_is_unknown_missing_or_out_of_bounds_is_said() {
        let error = |name, arguments: &[(&str, Value<'_>)]| ask(name, arguments).unwrap_err();
        assert!(error("wizard", &[]).starts_with("unknown bound, use max_in, unnoticed,"));
        assert_eq!(error("max_in", &[]), "policy is required");
        assert_eq!(error("max_in", &[("policy", Value::Text("5/1m"))]), "span is required");
        assert_eq!(
            error("opened", &[("guesses", Value::Integer(1)), ("bit", Value::Integer(1))]),
            "unknown argument, use guesses, bits, argument=`bit`"
        );
        assert_eq!(
            error("opened", &[("guesses", Value::Integer(-1))]),
            "guesses must be a whole number from 0 to 9007199254740992, value=`-1`"
        );
        assert!(
            error("max_in", &[("policy", Value::Text("s0/1m")), ("span", Value::Integer(1))]).starts_with("rate count")
        );
        assert!(
            error("max_in", &[("policy", Value::Text("s5/1m,6/1h")), ("span", Value::Integer(1))])
                .starts_with("strikes and fixed")
        );
    }
}
