//! F06 and scenario 9: a connection that ends, or falls silent, at every byte of what is said.
//!
//! Invariant: each byte has a store of its own, so that no breaker stands between the bytes.

use std::time::Duration;

use doorkeep::redis::{AttemptLimiter, RedisStore, StoreOptions};
use doorkeep::{OnError, Strikes};

use crate::proxy::Fault;
use crate::rows::is_without_store;
use crate::server::Engine;
use crate::stage::{PASSWORD, Road, SLACK, Stage, WINDOW, in_time};

const SHORT: Duration = Duration::from_millis(40);

fn limiter(stage: &Stage, name: &str) -> (RedisStore, AttemptLimiter) {
    let url = format!("redis://:{PASSWORD}@127.0.0.1:{}/0", stage.proxy.port());
    let options = StoreOptions { timeout: SHORT, on_error: OnError::Closed, ..StoreOptions::default() };
    let store = RedisStore::new(&url, options).unwrap();
    let strikes = Strikes { threshold: 1024, lockout_window: WINDOW, max_tracked_keys: 10 };
    let limiter = AttemptLimiter::new(&store, name, strikes, None).unwrap();
    (store, limiter)
}

/// Makes one attempt for every number of bytes that pass, until one is answered, and tells how many that took.
///
/// The fault may keep the reply or the attempt from its place, but an attempt is never counted twice.
fn at_every_byte(fault: fn(usize) -> Fault, scripts_are_known: bool, step: usize) -> usize {
    let stage = Stage::new(Engine::Valkey, &[], Road::Proxy);
    let guards = stage.closed().clone();
    stage.run(async move { guards.every_call_is_answered().await });
    for bytes in (0..20_000).step_by(step) {
        let name = format!("byte-{bytes}");
        let (store, limiter) = limiter(&stage, &name);
        if !scripts_are_known {
            stage.tell("SCRIPT FLUSH");
        }
        stage.proxy.set(fault(bytes));
        let call = async move { in_time("decide", SHORT + SLACK, limiter.decide("ann", None)).await };
        let decision = stage.run(call).unwrap();
        let told = format!("{:?}", store.take_events());
        assert!(!told.contains(PASSWORD) && !told.contains("ann"), "{told}");
        let keys: Vec<String> = stage.ask(&format!("KEYS ratelimit:{{{name}:*")).unwrap();
        let counted = keys.first().map(|key| stage.ask::<Vec<u8>>(&format!("GET {key}")).unwrap());
        assert!(counted.is_none_or(|state| state.len() == 18), "I4: one attempt was made after {bytes} bytes");
        stage.proxy.set(Fault::Pass);
        if !is_without_store(&decision) {
            assert_eq!(told, "[]");
            stage.check_keys();
            return bytes;
        }
        assert!(told.contains("StoreDown"), "{bytes} bytes: {told}");
    }
    panic!("no call was ever answered");
}

#[test]
fn f06_a_reply_that_ends_at_any_byte_is_a_failure() {
    for scripts_are_known in [true, false] {
        let bytes = at_every_byte(Fault::Cut, scripts_are_known, 1);
        // The watch of the server's memory may have its reply first.
        assert!((30..8000).contains(&bytes), "{bytes} bytes are no reply");
    }
}

#[test]
fn f06_a_reply_that_stops_at_any_byte_is_a_failure_within_the_timeout() {
    let bytes = at_every_byte(Fault::Choke, true, 1);
    assert!((30..8000).contains(&bytes), "{bytes} bytes are no reply");
}

#[test]
fn s09_a_client_killed_at_any_byte_of_its_request_leaves_no_key_without_an_end() {
    let bytes = at_every_byte(Fault::CutUp, true, 1);
    assert!((200..1000).contains(&bytes), "{bytes} bytes are no request");
}

#[test]
fn s09_nor_while_it_sends_the_source_of_a_script() {
    let bytes = at_every_byte(Fault::CutUp, false, 83);
    assert!((4000..20_000).contains(&bytes), "{bytes} bytes are no script");
}
