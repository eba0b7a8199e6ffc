//! The files of the corpus about what an application is told: HTTP answers, presets, advice.

use std::sync::Arc;
use std::time::Duration;

use doorkeep::host::keys::{self as host_keys, Address};
use doorkeep::http::{self, HeaderOptions, RoundUp};
use doorkeep::lint::lint;
use doorkeep::{Decision, Key, Limiter, Outcome, Reason, Rule, Timestamp, keys_for, presets};
use serde_json::{Value, json};

use crate::fields::{Fields, bytes, files, micros};
use crate::limiter::{keys, rule, rules};
use crate::texts::check;

#[test]
fn every_decision_is_said_over_http_as_in_the_corpus() {
    check("http.json", |case| {
        let rules = rules(case);
        let keys = keys(&rules, case)?;
        let decision = decision(case.fields("decision"));
        let round_up = case.take("round_up_us").as_u64().map(Duration::from_micros).map(RoundUp::new).transpose()?;
        let rate_limit = case.take("rate_limit").as_bool().unwrap();
        let fields = http::headers(&decision, &keys, HeaderOptions { round_up, rate_limit });
        let named: serde_json::Map<_, _> = fields.iter().map(|(name, value)| ((*name).into(), json!(value))).collect();
        assert_eq!(named.len(), fields.len(), "a field stands twice");
        Ok(json!({ "status": http::status(&decision), "headers": named }))
    });
}

#[test]
fn every_preset_keeps_the_claim_of_the_corpus() {
    check("presets.json", |case| {
        let name = case.text("preset");
        let preset = presets::all().into_iter().find(|preset| preset.name() == name).unwrap();
        let claim = case.take("claim");
        if !claim.is_null() {
            let mut claim = Fields::new(claim);
            claim.text("source");
            let (span, at_most) = (claim.micros("span_us"), claim.number("at_most"));
            assert!(preset.max_in(span) <= at_most, "{name} claims {at_most} in {span:?}");
            claim.done("claim");
        }
        let most = [60, 3600, 86_400].map(|seconds| {
            let span = Duration::from_secs(seconds);
            assert_eq!(greedy(&preset, span), preset.max_in(span), "{name} in {span:?}");
            json!([micros(span), preset.max_in(span)])
        });
        Ok(json!({ "policy": preset.policy(), "by": preset.by(), "max_in": most }))
    });
}

#[test]
fn every_preset_is_in_the_corpus() {
    let corpus = files().into_iter().find(|file| file.name == "presets.json").unwrap();
    let named: Vec<String> = corpus.cases.into_iter().map(|mut case| case.text("preset")).collect();
    let presets = presets::all();
    assert_eq!(named, presets.iter().map(Rule::name).collect::<Vec<_>>());
}

#[test]
fn every_set_of_rules_gets_the_advice_of_the_corpus() {
    check("lint.json", |case| {
        let rules: Vec<Rule> = case.list("rules").into_iter().map(|fields| described(Fields::new(fields))).collect();
        let forgive = case.texts("forgive");
        let forgive: Vec<&str> = forgive.iter().map(String::as_str).collect();
        let advice = lint(&rules, &forgive);
        assert!(advice.iter().all(|advice| advice.to_string().starts_with(&format!("rule `{}` ", advice.rule()))));
        Ok(json!({ "advice": advice.iter().map(ToString::to_string).collect::<Vec<_>>() }))
    });
}

#[test]
fn every_request_has_the_keys_of_the_corpus() {
    check("keys-for.json", |case| {
        let rules: Vec<Rule> = case.list("rules").into_iter().map(|fields| described(Fields::new(fields))).collect();
        let address = case.take_if_any("address");
        let words: Vec<(String, Vec<u8>)> = match case.take("words") {
            Value::Object(words) => words.iter().map(|(word, text)| (word.clone(), bytes(text))).collect(),
            words => panic!("no words: {words}"),
        };
        let address = match &address {
            None => Address::Unnamed,
            Some(Value::String(text)) => Address::Text(text),
            Some(_) => Address::None,
        };
        let text = |wanted: &str| words.iter().find(|(word, _)| word == wanted).map(|(_, text)| text.as_slice());
        let made = host_keys::keys_for(&rules, address, text);
        if address != Address::Unnamed {
            let named: Vec<(&str, &[u8])> = words.iter().map(|(word, text)| (word.as_str(), text.as_slice())).collect();
            let address = if let Address::Text(text) = address { Some(text) } else { None };
            assert_eq!(keys_for(&rules, address, &named), made.clone().map(|made| made.keys));
        }
        let made = made?;
        let of = |key: &Key| {
            json!({
                "rule": key.rule().name(), "digest": key.digest().to_string(), "is_address": key.is_address()
            })
        };
        Ok(json!({ "keys": made.keys.iter().map(of).collect::<Vec<_>>(), "leaves_out": made.leaves_out }))
    });
}

/// What an attacker gets on one key in a half-open span, who asks whenever the limiter says that it is time.
fn greedy(rule: &Rule, span: Duration) -> u64 {
    let limiter = Limiter::new(100).unwrap();
    let key = [rule.key(&[b"victim"]).unwrap()];
    let (mut now, mut admitted) = (0, 0);
    while now < micros(span) {
        let decision = limiter.decide(&key, 1, Timestamp::from_micros(now).unwrap()).unwrap();
        admitted += u64::from(decision.allowed());
        now += micros(decision.retry_after.unwrap());
    }
    admitted
}

/// A rule that is written out, or the name of a preset.
fn described(mut fields: Fields) -> Rule {
    if let Some(preset) = fields.take_if_any("preset") {
        fields.done("preset");
        return presets::all().into_iter().find(|known| preset == known.name()).unwrap();
    }
    let name = fields.text("name");
    rule(&name, fields)
}

fn decision(mut fields: Fields) -> Decision {
    let outcome = match fields.text("outcome").as_str() {
        "allowed" => Outcome::Allowed,
        "allowed_last" => Outcome::AllowedLast,
        "denied" => Outcome::Denied,
        outcome => panic!("unknown outcome {outcome}"),
    };
    let reasons = [Reason::Limited, Reason::Locked, Reason::Saturated, Reason::Unavailable];
    let reason = fields.take("reason");
    let decision = Decision {
        outcome,
        reason: reason.as_str().map(|text| reasons.into_iter().find(|known| known.as_str() == text).unwrap()),
        rule: fields.take("rule").as_str().map(Arc::from),
        retry_after: fields.take("retry_after_us").as_u64().map(Duration::from_micros),
        remaining: fields.narrow("remaining"),
        reset_after: fields.micros("reset_after_us"),
        degraded: false,
        engaged: Vec::new(),
    };
    fields.done("decision");
    decision
}
