//! A server that a trace runs on, and what must hold of its keys after each step.

use std::time::Duration;

use doorkeep::host::runtime;
use doorkeep::redis::{RedisStore, StoreOptions};
use doorkeep::{OnError, Timestamp};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::lua54::Lua54;
use crate::server::{Engine, Server};

/// Names and remaining times of all keys, in one trip.
const ENDS: &str = "local ends = {} for i, key in ipairs(redis.call('KEYS', '*')) do \
                    ends[i] = key .. ' ' .. redis.call('PTTL', key) end return ends";
/// With an explicit `now` a key lives at least that long.
const LEAST_TTL_MS: u64 = 600_001;

/// Where the scripts run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    On(Engine),
    Lua54,
}

pub(crate) struct Bench {
    pub(crate) store: RedisStore,
    witness: std::cell::RefCell<redis::Connection>,
    _server: Option<Server>,
}

impl Bench {
    fn new(place: Place) -> Self {
        let server = if let Place::On(engine) = place { Some(Server::start(engine)) } else { None };
        let url = server.as_ref().map_or_else(|| Lua54::start().url(), Server::url);
        let options =
            StoreOptions { on_error: OnError::Closed, timeout: Duration::from_secs(5), ..StoreOptions::default() };
        let store = RedisStore::new(&url, options).unwrap();
        let witness = redis::Client::open(url).unwrap().get_connection().unwrap();
        Self { store, witness: witness.into(), _server: server }
    }

    pub(crate) fn clear(&self) {
        redis::cmd("FLUSHALL").exec(&mut self.witness.borrow_mut()).unwrap();
    }

    /// I8: no key lives longer than two windows, or than its state reaches ahead of the clock, whichever is longer.
    ///
    /// `reach` is how far the trace's states were ahead of its clock at most, in µs.
    pub(crate) fn check_ends(&self, longest: u64, reach: u64) -> Result<(), TestCaseError> {
        let ends: Vec<String> = redis::cmd("EVAL").arg(ENDS).arg(0).query(&mut *self.witness.borrow_mut()).unwrap();
        let most = i64::try_from((2 * longest).max(reach).div_ceil(1000).max(LEAST_TTL_MS - 2) + 2).unwrap();
        for end in ends {
            let (key, ttl) = end.rsplit_once(' ').unwrap();
            let ttl: i64 = ttl.parse().unwrap();
            proptest::prop_assert!(0 < ttl && ttl <= most, "{} has a TTL of {} ms, at most {} may be", key, ttl, most);
        }
        Ok(())
    }
}

/// Runs a property on a server of its own, always with the same cases.
pub(crate) fn holds<S: Strategy>(
    place: Place,
    cases: u32,
    traces: S,
    test: impl Fn(&Bench, S::Value) -> Result<(), TestCaseError>,
) {
    let bench = Bench::new(place);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    if let Err(failure) = runner.run(&traces, |trace| {
        bench.clear();
        test(&bench, trace)
    }) {
        panic!("{failure}");
    }
}

/// The same property in every place, a test each.
macro_rules! everywhere {
    ($property:ident, $redis:ident, $valkey:ident, $lua54:ident) => {
        #[test]
        fn $redis() {
            $property(crate::bench::Place::On(crate::server::Engine::Redis));
        }

        #[test]
        fn $valkey() {
            $property(crate::bench::Place::On(crate::server::Engine::Valkey));
        }

        #[test]
        fn $lua54() {
            $property(crate::bench::Place::Lua54);
        }
    };
}
pub(crate) use everywhere;

pub(crate) fn wait<T>(call: impl Future<Output = T>) -> T {
    runtime::block_on(call)
}

pub(crate) fn at(now: u64) -> Timestamp {
    Timestamp::from_micros(now).unwrap()
}

/// Both answered alike, errors included.
pub(crate) fn alike<T: PartialEq + std::fmt::Debug>(
    here: Result<T, doorkeep::Error>,
    there: Result<T, doorkeep::Error>,
    step: &dyn std::fmt::Debug,
    now: u64,
) -> Result<(), TestCaseError> {
    let (here, there) = (here.map_err(|error| error.to_string()), there.map_err(|error| error.to_string()));
    proptest::prop_assert_eq!(here, there, "{:?} at {}, memory on the left", step, now);
    Ok(())
}
