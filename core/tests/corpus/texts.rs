//! The files of the corpus that are about texts: keys, networks, rates, configuration.

use std::time::Duration;

use doorkeep::host::input::{self, Unit, Value as Host};
use doorkeep::http::RoundUp;
use doorkeep::{
    AttemptLimiter, ClientIp, EmailOptions, Error, FixedWindow, Limiter, Rates, Rule, Strikes, TokenBucket,
    canonical_email, canonical_username, network,
};
use serde_json::{Value, json};

use crate::fields::{Fields, bytes, failure, files};

/// What has no steps: these files, those of `answers.rs`, and the runs of the lab, which `lab/tests/lab` repeats.
pub(crate) const FILES: [&str; 12] = [
    "client-ip.json",
    "config.json",
    "email.json",
    "http.json",
    "keys-for.json",
    "keys.json",
    "lab.json",
    "lint.json",
    "network.json",
    "presets.json",
    "rates.json",
    "username.json",
];

pub(crate) fn check(file: &str, answer_to: impl Fn(&mut Fields) -> Result<Value, Error>) {
    let found = files().into_iter().find(|found| found.name == file).unwrap();
    let mut failures = Vec::new();
    for mut case in found.cases {
        let name = case.text("name");
        let answer = answer_to(&mut case).unwrap_or_else(|error| failure(&error));
        let mut answer = answer;
        if let Some(prefix) = case.take_if_any("message_prefix") {
            let starts =
                answer["message"].as_str().is_some_and(|message| message.starts_with(prefix.as_str().unwrap()));
            if starts {
                answer["message"].take();
                answer.as_object_mut().unwrap().remove("message");
            }
        }
        let expected: serde_json::Map<_, _> = case.into_entries().collect();
        let expected = Value::Object(expected);
        if expected != answer {
            failures.push(format!("{name}\n  expected {expected}\n  answered {answer}"));
        }
    }
    assert!(failures.is_empty(), "{file}: {} cases differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_key_has_the_digest_of_the_corpus() {
    let rates: Rates = "5/1m".parse().unwrap();
    check("keys.json", |case| {
        let parts: Vec<Vec<u8>> = case.list("parts").iter().map(bytes).collect();
        let mut rule = Rule::new("rule", rates.clone())?;
        if let Some(Value::String(secret)) = case.take_if_any("secret_hex") {
            rule = rule.with_secret(&from_hex(&secret))?;
        }
        let key = rule.key(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        Ok(json!({ "digest": key.digest().to_string() }))
    });
}

#[test]
fn every_address_falls_into_the_network_of_the_corpus() {
    check("network.json", |case| {
        let prefix = input::ipv6_prefix(Host::Integer(case.take("ipv6_prefix").as_i64().unwrap().into()));
        let prefix = prefix.inspect_err(|_| drop(case.text("address")))?;
        Ok(json!({ "network": network(&case.text("address"), prefix)? }))
    });
}

#[test]
fn every_client_is_found_as_in_the_corpus() {
    check("client-ip.json", |case| {
        let (proxies, header) = (case.texts("trusted_proxies"), case.text("header"));
        let (peer, lines) = (case.take("peer"), case.list("lines"));
        let client_ip = ClientIp::new(&proxies.iter().map(String::as_str).collect::<Vec<_>>(), &header)?;
        // A host passes no peer as an empty one, and what is no Unicode with its surrogates replaced.
        let peer = if peer.is_null() { Vec::new() } else { bytes(&peer) };
        let lines: Vec<Vec<u8>> = lines.iter().map(bytes).collect();
        let address = client_ip.resolve(&String::from_utf8_lossy(&peer), &lines);
        Ok(json!({ "address": address.map(|address| address.to_string()) }))
    });
}

#[test]
fn every_email_has_the_spelling_of_the_corpus() {
    check("email.json", |case| {
        let mut option = |name: &str| case.take_if_any(name).is_some_and(|truth| truth.as_bool().unwrap());
        let options = EmailOptions { drop_tags: option("drop_tags"), drop_gmail_dots: option("drop_gmail_dots") };
        let email = canonical_email(input::email(Some(&bytes(&case.take("text"))))?, options)?;
        assert_eq!(canonical_email(&email, options).as_ref(), Ok(&email));
        Ok(json!({ "email": email }))
    });
}

#[test]
fn every_user_name_has_the_spelling_of_the_corpus() {
    check("username.json", |case| {
        let username = canonical_username(input::username(Some(&bytes(&case.take("text"))))?)?;
        assert_eq!(canonical_username(&username).as_ref(), Ok(&username));
        Ok(json!({ "username": username }))
    });
}

#[test]
fn every_rates_text_reads_as_in_the_corpus() {
    check("rates.json", |case| {
        let rates: Rates = case.text("text").parse()?;
        let mut answer = json!({ "canonical": rates.to_string() });
        if let Some(policy) = case.take_if_any("policy") {
            assert_eq!(policy.as_str().unwrap(), Rule::new("rule", rates.clone())?.policy());
        }
        if let Some(spans) = case.take_if_any("max_in") {
            for pair in spans.as_array().unwrap() {
                let span = Duration::from_micros(pair[0].as_u64().unwrap());
                assert_eq!(rates.max_in(span), pair[1].as_u64().unwrap(), "{rates} in {span:?}");
            }
        }
        assert_eq!(rates.to_string().parse::<Rates>().as_ref(), Ok(&rates));
        answer["canonical"] = json!(rates.to_string());
        Ok(answer)
    });
}

#[test]
fn every_configuration_is_judged_as_in_the_corpus() {
    check("config.json", |case| {
        let mut make = case.fields("make");
        let answer = construct(&mut make);
        make.done("make");
        answer
    });
}

fn construct(make: &mut Fields) -> Result<Value, Error> {
    let kind = make.text("kind");
    let mut given = |name: &str| Given(make.take_if_any(name));
    match kind.as_str() {
        "attempt_limiter" => {
            let (threshold, window, keys) = (given("threshold"), given("lockout_window"), given("max_tracked_keys"));
            let strikes = Strikes {
                threshold: input::threshold(threshold.number())?,
                lockout_window: window.duration(input::lockout_window)?,
                max_tracked_keys: input::max_tracked_keys(keys.number())?,
            };
            AttemptLimiter::new(strikes).map(drop)
        }
        "token_bucket" => {
            let (rate, window, capacity) = (given("rate"), given("window"), given("capacity"));
            let rate = input::bucket_rate(rate.number())?;
            TokenBucket::new(rate, window.duration(input::bucket_window)?, input::bucket_capacity(capacity.number())?)
                .map(drop)
        }
        "fixed_window" => {
            let (limit, window, keys) = (given("limit"), given("window"), given("max_keys"));
            let limit = input::limit(limit.number())?;
            FixedWindow::new(limit, window.duration(input::window)?, input::max_keys(keys.number())?).map(drop)
        }
        "limiter" => Limiter::new(input::capacity(given("capacity").number())?).map(drop),
        "rule" | "strike_rule" => return rule(&kind, make),
        "cost" => input::cost(given("value").number()).map(drop),
        "n" => input::tokens(given("value").number()).map(drop),
        "round_up" => {
            let value = given("value");
            value
                .duration(|value, unit| input::round_up(value, unit).map(|_| Duration::ZERO))
                .and_then(|duration| if duration.is_zero() { Ok(()) } else { RoundUp::new(duration).map(drop) })
        }
        kind => panic!("unknown kind {kind}"),
    }?;
    Ok(json!({}))
}

fn rule(kind: &str, make: &mut Fields) -> Result<Value, Error> {
    let name = make.text("name");
    let mut given = |name: &str| Given(make.take_if_any(name));
    let (rates, threshold, window) = (given("rates"), given("threshold"), given("lockout_window"));
    let (prefix, secret) = (given("ipv6_prefix"), make.take_if_any("secret_hex"));
    let by = make.texts("by");
    let mut rule = match (kind, rates.number()) {
        ("rule", Host::Text(rates)) => Rule::new(&name, rates.parse()?)?,
        ("strike_rule", Host::Missing) => {
            let threshold = input::threshold(threshold.number())?;
            Rule::strikes(&name, threshold, window.duration(input::lockout_window)?)?
        }
        odd => panic!("odd rule {odd:?}"),
    };
    rule = rule.with_ipv6_prefix(input::ipv6_prefix(prefix.number())?)?;
    rule = rule.with_by(&by.iter().map(String::as_str).collect::<Vec<_>>())?;
    if let Some(secret) = secret {
        rule = rule.with_secret(&from_hex(secret.as_str().unwrap()))?;
    }
    drop(rule);
    Ok(json!({}))
}

/// A value as a host language would hold it.
struct Given(Option<Value>);

impl Given {
    fn number(&self) -> Host<'_> {
        match &self.0 {
            None => Host::Missing,
            Some(Value::Number(number)) => Host::Integer(number.as_i64().map_or(i128::MAX, i128::from)),
            Some(Value::String(text)) => Host::Text(text),
            Some(odd) => self.odd(odd),
        }
    }

    fn odd(&self, odd: &Value) -> Host<'static> {
        let mut fields = Fields::new(odd.clone());
        let value = if let Some(float) = fields.take_if_any("float").or_else(|| fields.take_if_any("seconds")) {
            Host::Float(float.as_str().unwrap().parse().unwrap())
        } else if let Some(truth) = fields.take_if_any("bool") {
            Host::Bool(truth.as_bool().unwrap())
        } else {
            fields.take("none");
            Host::Missing
        };
        fields.done("value");
        value
    }

    /// Whole numbers are microseconds here, in the language's own type, which the constructor judges.
    fn duration(&self, judge: impl Fn(Host<'_>, Unit) -> Result<Duration, Error>) -> Result<Duration, Error> {
        match self.number() {
            Host::Integer(micros) if micros >= 0 => Ok(Duration::from_micros(u64::try_from(micros).unwrap())),
            value => judge(value, Unit::Seconds),
        }
    }
}

pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
