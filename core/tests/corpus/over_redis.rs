//! The corpus over real servers: the same answers, to the microsecond.
//!
//! Left out: what only a bounded table knows (small capacities, sizes and counters).

use std::collections::HashMap;

use doorkeep::host::runtime;
use doorkeep::redis::{
    Attempt, AttemptLimiter, FixedWindow, Limiter, RedisStore, Reservation, StoreOptions, TokenBucket,
};
use doorkeep::{Error, Key, OnError, Rule, Settlement, Strikes, Timestamp};
use serde_json::{Value, json};

use crate::fields::{self, Fields, answer, bytes, decision, micros};
use crate::{Answer, Subject, limiter, server};

/// Below it a table may evict within a case.
const ROOMY: u64 = 50;

#[test]
fn every_trace_is_answered_alike_over_valkey() {
    replay(server::Engine::Valkey);
}

#[test]
fn every_trace_is_answered_alike_over_redis() {
    replay(server::Engine::Redis);
}

fn replay(engine: server::Engine) {
    let server = server::Server::start(engine);
    let mut failures = Vec::new();
    let mut cases = 0;
    let traces = fields::files().into_iter().filter(|file| !crate::texts::FILES.contains(&file.name.as_str()));
    for mut case in traces.flat_map(|file| file.cases) {
        let name = case.text("name");
        let mut described = case.fields("limiter");
        let capacity = ["capacity", "max_tracked_keys", "max_keys"].iter().find_map(|field| described.peek(field));
        if capacity.and_then(Value::as_u64).unwrap() < ROOMY {
            continue;
        }
        cases += 1;
        let options =
            StoreOptions { prefix: format!("case-{cases}"), on_error: OnError::Closed, ..StoreOptions::default() };
        let store = RedisStore::new(&server.url(), options).unwrap();
        let mut subject = subject(&store, &mut described);
        for (i, mut step) in case.list("steps").into_iter().map(Fields::new).enumerate() {
            let op = step.text("op");
            let expected = step.take_if_any("expect");
            if matches!(op.as_str(), "size" | "stats") {
                continue;
            }
            let answer = subject.step(&op, &mut step);
            step.done(&name);
            if expected.as_ref() != Some(&answer) {
                let expected = expected.unwrap_or_default();
                failures.push(format!("{name}, step {i} ({op})\n  expected {expected}\n  answered {answer}"));
                break;
            }
        }
        store.close();
    }
    assert!(failures.is_empty(), "{} of {cases} cases differ:\n{}", failures.len(), failures.join("\n"));
    assert!(cases > 200, "the corpus was not found: {cases} cases");
}

fn subject(store: &RedisStore, fields: &mut Fields) -> Box<dyn Subject> {
    match fields.text("kind").as_str() {
        "limiter" => Box::new(Limiters {
            limiter: Limiter::new(store, None, fields.narrow("capacity")).unwrap(),
            rules: limiter::rules(fields),
            attempts: HashMap::new(),
        }),
        "attempt_limiter" => {
            let strikes = Strikes {
                threshold: fields.narrow("threshold"),
                lockout_window: fields.micros("lockout_window_us"),
                max_tracked_keys: fields.narrow("max_tracked_keys"),
            };
            let limiter = AttemptLimiter::new(store, "attempt-limiter", strikes, None).unwrap();
            Box::new(Attempts { limiter, reservations: HashMap::new() })
        }
        "token_bucket" => {
            let bucket = (fields.narrow("rate"), fields.micros("window_us"), fields.narrow("capacity"));
            Box::new(Tokens(TokenBucket::new(store, "token-bucket", bucket, None).unwrap()))
        }
        "fixed_window" => {
            let window = (fields.narrow("limit"), fields.micros("window_us"), fields.narrow("max_keys"));
            Box::new(Windows(FixedWindow::new(store, "fixed-window", window, None).unwrap()))
        }
        kind => panic!("unknown kind of limiter: {kind}"),
    }
}

/// Asks about a key at an instant, unless the instant is refused.
fn asked<T, F: Future<Output = Result<T, Error>>>(
    fields: &mut Fields,
    ask: impl FnOnce(Vec<u8>, Option<Timestamp>) -> F,
) -> Result<T, Error> {
    let (key, now) = (bytes(&fields.take("key")), fields.now());
    runtime::block_on(ask(key, Some(now?)))
}

struct Attempts {
    limiter: AttemptLimiter,
    reservations: HashMap<String, Reservation>,
}

impl Subject for Attempts {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        let limiter = &self.limiter;
        match op {
            "attempt" => {
                let name = fields.take_if_any("as");
                let reserved = asked(fields, |key, now| limiter.reserve(key, now));
                answer(reserved, |(made, reservation)| {
                    if let Some(name) = name {
                        self.reservations.insert(name.as_str().unwrap().to_owned(), reservation);
                    }
                    decision(&made)
                })
            }
            "repeat" => {
                let reservation = &self.reservations[&fields.text("reservation")];
                let repeated = runtime::block_on(limiter.repeat(reservation, fields.now().ok()));
                decision(&repeated.unwrap())
            }
            "cancel" => {
                let reservation = self.reservations[&fields.text("reservation")].clone();
                json!({ "cancelled": runtime::block_on(limiter.cancel(reservation, fields.now().ok())).as_str() })
            }
            "locked" => {
                answer(asked(fields, |key, now| limiter.locked(key, now)), |locked| json!({ "locked": locked }))
            }
            "retry_after" => answer(
                asked(fields, |key, now| limiter.retry_after(key, now)),
                |wait| json!({ "retry_after_us": wait.map(micros) }),
            ),
            "refund" => answer(asked(fields, |key, now| limiter.refund(key, now)), |()| json!({})),
            "reset" => {
                let key = bytes(&fields.take("key"));
                answer(runtime::block_on(limiter.reset(key)), |reset| json!({ "reset": reset }))
            }
            op => panic!("unknown operation {op}"),
        }
    }
}

struct Tokens(TokenBucket);

impl Subject for Tokens {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        let Self(bucket) = self;
        match op {
            "allow" | "allow_n" => {
                let n = fields.take_if_any("n").map_or(1, |n| n.as_i64().unwrap());
                let allowed = asked(fields, |key, now| async move { Ok(bucket.allow_n(key, n, now).await) });
                answer(allowed, |allowed| json!({ "allowed": allowed }))
            }
            "retry_after" => answer(
                asked(fields, |key, now| bucket.retry_after(key, now)),
                |wait| json!({ "retry_after_us": wait.map(micros) }),
            ),
            "reset" => json!({ "reset": runtime::block_on(bucket.reset(bytes(&fields.take("key")))) }),
            "close" => {
                bucket.close();
                json!({})
            }
            op => panic!("unknown operation {op}"),
        }
    }
}

struct Windows(FixedWindow);

impl Subject for Windows {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        let Self(window) = self;
        match op {
            "consume" => answer(asked(fields, |key, now| window.consume(key, now)), |made| decision(&made)),
            "peek" => answer(asked(fields, |key, now| window.peek(key, now)), |made| decision(&made)),
            "reset" => {
                let key = bytes(&fields.take("key"));
                answer(runtime::block_on(window.reset(key)), |reset| json!({ "reset": reset }))
            }
            op => panic!("unknown operation {op}"),
        }
    }
}

struct Limiters {
    limiter: Limiter,
    rules: HashMap<String, Rule>,
    attempts: HashMap<String, Attempt>,
}

impl Limiters {
    fn decide(&mut self, op: &str, fields: &mut Fields) -> Result<Value, Error> {
        let name = fields.take_if_any(if op == "extend" { "attempt" } else { "as" });
        let keys: Result<Vec<Key>, Error> = limiter::keys(&self.rules, fields);
        let (cost, now) = (fields.cost(), fields.now());
        let (keys, cost, now) = (keys?, cost?, Some(now?));
        let made = runtime::block_on(async {
            match (op, name) {
                ("allow", None) => self.limiter.decide(&keys, cost, now).await,
                ("peek", None) => self.limiter.peek(&keys, cost, now).await,
                ("extend", Some(name)) => self.attempts[name.as_str().unwrap()].extend(&keys, cost, now).await,
                ("attempt", Some(name)) => {
                    let attempt = self.limiter.attempt(&keys, cost, now).await?;
                    let made = attempt.decision();
                    self.attempts.insert(name.as_str().unwrap().to_owned(), attempt);
                    Ok(made)
                }
                (op, name) => panic!("unknown operation {op} as {name:?}"),
            }
        })?;
        Ok(decision(&made))
    }

    fn success(&self, fields: &mut Fields) -> Result<bool, Error> {
        let attempt = &self.attempts[&fields.text("attempt")];
        let lists = ["forgive", "give_back", "forgive_address"].map(|list| fields.texts(list));
        let [forgive, give_back, forgive_address] =
            lists.each_ref().map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
        let settlement = Settlement { forgive: &forgive, give_back: &give_back, forgive_address: &forgive_address };
        let now = Some(fields.now()?);
        runtime::block_on(attempt.success(&settlement, now))
    }
}

impl Subject for Limiters {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        match op {
            "success" => answer(self.success(fields), |settled| json!({ "settled": settled })),
            "cancel" => {
                let attempt = &self.attempts[&fields.text("attempt")];
                json!({ "settled": runtime::block_on(attempt.cancel(fields.now().ok())) })
            }
            "failure" => json!({ "settled": self.attempts[&fields.text("attempt")].failure() }),
            "release" => {
                let attempt = &self.attempts[&fields.text("attempt")];
                json!({ "settled": runtime::block_on(attempt.release(fields.now().ok())) })
            }
            "reset" => {
                let keys = limiter::keys(&self.rules, fields);
                let reset = keys.and_then(|keys| runtime::block_on(self.limiter.reset(&keys)));
                answer(reset, |reset| json!({ "reset": reset }))
            }
            op => answer(self.decide(op, fields), |made| made),
        }
    }
}
