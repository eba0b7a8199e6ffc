//! Makes decisions over Redis from Rust, as many as it can.
//!
//! Reads lines `subject shape in-flight milliseconds` and answers each with the decisions a second. `shapes.json` says
//! what a shape asks. Runs on the library's own runtime, as the packages do.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use doorkeep::host::runtime;
use doorkeep::redis::{Limiter, RedisStore, StoreOptions};
use doorkeep::{Key, OnError, Reason, Rule};
use serde::Deserialize;

#[derive(Deserialize)]
struct Shape {
    keys: usize,
    rules: BTreeMap<String, String>,
}

/// A limiter, and the keys of its calls.
struct Subject {
    limiter: Limiter,
    calls: Vec<Vec<Key>>,
    turn: AtomicUsize,
}

impl Subject {
    fn new(store: &RedisStore, shape: &Shape) -> Result<Self, doorkeep::Error> {
        let rules: Vec<Rule> =
            shape.rules.iter().map(|(name, rates)| Rule::new(name, rates.parse()?)).collect::<Result<_, _>>()?;
        let key = |i: usize, place: usize| {
            let value = ((i * (place + 1)) % shape.keys).to_string();
            rules[place].key(&[value.as_bytes()])
        };
        let calls = (0..shape.keys).map(|i| (0..rules.len()).map(|place| key(i, place)).collect());
        let calls = calls.collect::<Result<_, _>>()?;
        Ok(Self { limiter: Limiter::new(store, None, 100_000)?, calls, turn: AtomicUsize::new(0) })
    }

    /// Makes calls one after the other until `end`; how many.
    async fn work(self: Arc<Self>, end: Instant) -> usize {
        let mut done = 0;
        while Instant::now() < end {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let decision =
                self.limiter.decide(&self.calls[turn % self.calls.len()], 1, None).await.expect("sound keys");
            assert!(decision.reason != Some(Reason::Unavailable), "the store did not answer");
            done += 1;
        }
        done
    }
}

async fn measure(subject: &Arc<Subject>, in_flight: usize, time: Duration) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let tasks: Vec<_> = (0..in_flight).map(|_| tokio::spawn(Arc::clone(subject).work(start + time))).collect();
    let mut done = 0;
    for task in tasks {
        done += task.await?;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("the address of a server")?;
    let shapes: HashMap<String, Shape> = serde_json::from_str(include_str!("../../redis/shapes.json"))?;
    let timeout = Duration::from_secs(2);
    let options = StoreOptions { prefix: "bench".to_owned(), timeout, on_error: OnError::Closed, ..Default::default() };
    let store = RedisStore::new(&url, options)?;
    let mut subjects: HashMap<String, Arc<Subject>> = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let [_, shape, in_flight, milliseconds] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("not a request: {line}").into());
        };
        if !subjects.contains_key(shape) {
            subjects.insert(shape.to_owned(), Arc::new(Subject::new(&store, &shapes[shape])?));
        }
        let time = Duration::from_millis(milliseconds.parse()?);
        println!("{}", runtime::block_on(measure(&subjects[shape], in_flight.parse()?, time))?);
    }
    Ok(())
}
