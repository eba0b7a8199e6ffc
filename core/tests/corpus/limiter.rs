//! The several-key limiter under the corpus.

use std::collections::HashMap;

use doorkeep::{Attempt, Error, Key, Limiter, Rule, Settlement};
use serde_json::{Value, json};

use crate::fields::{Fields, answer, bytes, decision, stats};
use crate::{Answer, Subject};

pub(crate) struct Limiters {
    limiter: Limiter,
    rules: HashMap<String, Rule>,
    attempts: HashMap<String, Attempt>,
}

impl Limiters {
    pub(crate) fn new(fields: &mut Fields) -> Self {
        let rules = rules(fields);
        Self { limiter: Limiter::new(fields.narrow("capacity")).unwrap(), rules, attempts: HashMap::new() }
    }

    fn decide(&mut self, op: &str, fields: &mut Fields) -> Result<Value, Error> {
        let name = fields.take_if_any(if op == "extend" { "attempt" } else { "as" });
        let keys = keys(&self.rules, fields);
        let (cost, now) = (fields.cost(), fields.now());
        let (keys, cost, now) = (keys?, cost?, now?);
        let made = match (op, name) {
            ("allow", None) => self.limiter.decide(&keys, cost, now)?,
            ("peek", None) => self.limiter.peek(&keys, cost, now)?,
            ("extend", Some(name)) => self.attempts[name.as_str().unwrap()].extend(&keys, cost, now)?,
            ("attempt", Some(name)) => {
                let attempt = self.limiter.attempt(&keys, cost, now)?;
                let made = attempt.decision();
                self.attempts.insert(name.as_str().unwrap().to_owned(), attempt);
                made
            }
            (op, name) => panic!("unknown operation {op} as {name:?}"),
        };
        Ok(decision(&made))
    }

    fn success(&self, fields: &mut Fields) -> Result<bool, Error> {
        let attempt = &self.attempts[&fields.text("attempt")];
        let lists = ["forgive", "give_back", "forgive_address"].map(|list| fields.texts(list));
        let [forgive, give_back, forgive_address] =
            lists.each_ref().map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
        let settlement = Settlement { forgive: &forgive, give_back: &give_back, forgive_address: &forgive_address };
        attempt.success(&settlement, fields.now()?)
    }
}

impl Subject for Limiters {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        match op {
            "success" => answer(self.success(fields), |settled| json!({ "settled": settled })),
            "cancel" => {
                let attempt = &self.attempts[&fields.text("attempt")];
                json!({ "settled": attempt.cancel(fields.now().unwrap()) })
            }
            "failure" => json!({ "settled": self.attempts[&fields.text("attempt")].failure() }),
            "release" => {
                let attempt = &self.attempts[&fields.text("attempt")];
                json!({ "settled": attempt.release(fields.now().unwrap()) })
            }
            "reset" => {
                let reset = keys(&self.rules, fields).and_then(|keys| self.limiter.reset(&keys));
                answer(reset, |reset| json!({ "reset": reset }))
            }
            "size" => json!({ "size": self.limiter.len() }),
            "stats" => stats(&self.limiter.stats()),
            op => answer(self.decide(op, fields), |made| made),
        }
    }
}

pub(crate) fn rules(fields: &mut Fields) -> HashMap<String, Rule> {
    let entries = fields.fields("rules").into_entries();
    entries.map(|(label, fields)| (label.clone(), rule(&label, Fields::new(fields)))).collect()
}

pub(crate) fn keys(rules: &HashMap<String, Rule>, fields: &mut Fields) -> Result<Vec<Key>, Error> {
    fields.list("keys").into_iter().map(|fields| key(rules, Fields::new(fields))).collect()
}

fn key(rules: &HashMap<String, Rule>, mut fields: Fields) -> Result<Key, Error> {
    let rule = &rules[&fields.text("rule")];
    let key = match fields.take_if_any("address") {
        Some(address) => rule.ip_key(address.as_str().unwrap()),
        None => {
            let parts: Vec<Vec<u8>> = fields.list("parts").iter().map(bytes).collect();
            rule.key(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
        }
    };
    fields.done("key");
    key
}

/// `ip#2` is a second rule object of the name `ip`.
pub(crate) fn rule(label: &str, mut fields: Fields) -> Rule {
    let name = label.split('#').next().unwrap();
    let mut rule = match fields.take_if_any("rates") {
        Some(rates) => Rule::new(name, rates.as_str().unwrap().parse().unwrap()),
        None => Rule::strikes(name, fields.narrow("threshold"), fields.micros("lockout_window_us")),
    };
    if let Some(prefix) = fields.take_if_any("ipv6_prefix") {
        rule = rule.and_then(|rule| rule.with_ipv6_prefix(u8::try_from(prefix.as_u64().unwrap()).unwrap()));
    }
    let by = fields.texts("by");
    rule = rule.and_then(|rule| rule.with_by(&by.iter().map(String::as_str).collect::<Vec<_>>()));
    if let Some(secret) = fields.take_if_any("secret_hex") {
        rule = rule.and_then(|rule| rule.with_secret(&crate::texts::from_hex(secret.as_str().unwrap())));
    }
    fields.done(label);
    rule.unwrap()
}
