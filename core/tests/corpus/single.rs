//! The single-key limiters under the corpus.

use std::collections::HashMap;

use doorkeep::{AttemptLimiter, Error, FixedWindow, Reservation, Strikes, Timestamp, TokenBucket};
use serde_json::json;

use crate::fields::{Fields, answer, bytes, decision, micros, stats};
use crate::{Answer, Subject};

pub(crate) struct Attempts {
    limiter: AttemptLimiter,
    reservations: HashMap<String, Reservation>,
}

impl Attempts {
    pub(crate) fn new(fields: &mut Fields) -> Self {
        let strikes = Strikes {
            threshold: fields.narrow("threshold"),
            lockout_window: fields.micros("lockout_window_us"),
            max_tracked_keys: fields.narrow("max_tracked_keys"),
        };
        Self { limiter: AttemptLimiter::new(strikes).unwrap(), reservations: HashMap::new() }
    }

    fn attempt(&mut self, fields: &mut Fields) -> Answer {
        let (key, now) = (bytes(&fields.take("key")), fields.now());
        let Some(name) = fields.take_if_any("as") else {
            return answer(now.and_then(|now| self.limiter.decide(&key, now)), |made| decision(&made));
        };
        answer(now.and_then(|now| self.limiter.try_reserve(&key, now)), |(made, reservation)| {
            self.reservations.insert(name.as_str().unwrap().to_owned(), reservation);
            decision(&made)
        })
    }
}

impl Subject for Attempts {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        let limiter = &self.limiter;
        let key = |fields: &mut Fields| bytes(&fields.take("key"));
        match op {
            "attempt" => self.attempt(fields),
            "repeat" => {
                let reservation = &self.reservations[&fields.text("reservation")];
                decision(&limiter.repeat(reservation, fields.now().unwrap()).unwrap())
            }
            "cancel" => {
                let reservation = self.reservations[&fields.text("reservation")].clone();
                json!({ "cancelled": limiter.cancel(reservation, fields.now().unwrap()).as_str() })
            }
            "locked" => {
                answer(asked(fields, |key, now| limiter.locked(key, now)), |locked| json!({ "locked": locked }))
            }
            "retry_after" => answer(
                asked(fields, |key, now| limiter.retry_after(key, now)),
                |wait| json!({ "retry_after_us": wait.map(micros) }),
            ),
            "refund" => answer(asked(fields, |key, now| limiter.refund(key, now)), |()| json!({})),
            "reset" => answer(limiter.reset(key(fields)), |reset| json!({ "reset": reset })),
            "size" => json!({ "size": limiter.len() }),
            "stats" => stats(&limiter.stats()),
            op => panic!("unknown operation {op}"),
        }
    }
}

/// Asks about a key at an instant, unless the instant is refused.
fn asked<T>(fields: &mut Fields, ask: impl FnOnce(Vec<u8>, Timestamp) -> Result<T, Error>) -> Result<T, Error> {
    let (key, now) = (bytes(&fields.take("key")), fields.now());
    ask(key, now?)
}

pub(crate) fn token_bucket(fields: &mut Fields) -> TokenBucket {
    TokenBucket::new(fields.narrow("rate"), fields.micros("window_us"), fields.narrow("capacity")).unwrap()
}

pub(crate) struct Tokens(pub(crate) TokenBucket);

impl Subject for Tokens {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        let Self(bucket) = self;
        let key = |fields: &mut Fields| bytes(&fields.take("key"));
        match op {
            "allow" => {
                answer(asked(fields, |key, now| Ok(bucket.allow(key, now))), |allowed| json!({ "allowed": allowed }))
            }
            "allow_n" => {
                let n = fields.take("n").as_i64().unwrap();
                answer(
                    asked(fields, |key, now| Ok(bucket.allow_n(key, n, now))),
                    |allowed| json!({ "allowed": allowed }),
                )
            }
            "retry_after" => answer(
                asked(fields, |key, now| bucket.retry_after(key, now)),
                |wait| json!({ "retry_after_us": wait.map(micros) }),
            ),
            "reset" => json!({ "reset": bucket.reset(key(fields)) }),
            "close" => {
                bucket.close();
                json!({})
            }
            "size" => json!({ "size": bucket.len() }),
            "stats" => stats(&bucket.stats()),
            op => panic!("unknown operation {op}"),
        }
    }
}

pub(crate) fn fixed_window(fields: &mut Fields) -> FixedWindow {
    FixedWindow::new(fields.narrow("limit"), fields.micros("window_us"), fields.narrow("max_keys")).unwrap()
}

pub(crate) struct Windows(pub(crate) FixedWindow);

impl Subject for Windows {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer {
        let Self(window) = self;
        let key = |fields: &mut Fields| bytes(&fields.take("key"));
        match op {
            "consume" => answer(asked(fields, |key, now| window.try_consume(key, now)), |made| decision(&made)),
            "peek" => answer(asked(fields, |key, now| window.peek(key, now)), |made| decision(&made)),
            "reset" => answer(window.reset(key(fields)), |reset| json!({ "reset": reset })),
            "size" => json!({ "size": window.len() }),
            "stats" => stats(&window.stats()),
            op => panic!("unknown operation {op}"),
        }
    }
}
