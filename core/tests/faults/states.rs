//! What stands at our keys that we did not write (F20), and clocks that are wrong (F21, F22).

use std::time::Duration;

use doorkeep::redis::{AttemptLimiter, Event, RedisStore, StoreClock, StoreOptions};
use doorkeep::{Decision, OnError, Timestamp};

use crate::server::Engine;
use crate::stage::{Guards, Road, STRIKES, Stage, WINDOW, ask};

const YEARS: u64 = 10 * 365 * 24 * 3_600 * 1_000_000;

/// The raw names of the keys of a limiter.
fn key_of(stage: &Stage, limiter: &str) -> String {
    let keys: Vec<String> = stage.ask(&format!("KEYS ratelimit:{{{limiter}-closed:*")).unwrap();
    assert_eq!(keys.len(), 1, "{limiter}: {keys:?}");
    keys[0].clone()
}

async fn one(guards: &Guards, limiter: &str, now: Option<Timestamp>) -> Decision {
    match limiter {
        "login" => guards.strikes.decide("ann", now).await.unwrap(),
        "window" => guards.window.consume("ann", now).await.unwrap(),
        "address" => guards.limiter.decide(&guards.keys()[1..], 1, now).await.unwrap(),
        limiter => panic!("{limiter}"),
    }
}

/// A far-future state of a kind, in its own format.
fn far_future(limiter: &str, at: u64) -> Vec<u8> {
    #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
    let time = (at as f64).to_be_bytes();
    match limiter {
        "login" => [&[1, 1][..], &time, b"12345678"].concat(),
        "window" => [&[1][..], &time, &1000u32.to_be_bytes()].concat(),
        "address" => [&[1][..], &time, &[0; 20]].concat(),
        limiter => panic!("{limiter}"),
    }
}

/// Puts something at the key of one attempt; the key is denied for at most one window, and told once if corrupt.
fn planted(limiter: &'static str, is_corrupt: bool, plant: impl Fn(&mut redis::Connection, &str)) {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::new(engine, &[], Road::Proxy);
        let guards = stage.closed().clone();
        let asked = guards.clone();
        assert!(stage.run(async move { one(&asked, limiter, None).await }).allowed());
        let key = key_of(&stage, limiter);
        let mut connection = stage.connection();
        redis::cmd("DEL").arg(&key).exec(&mut connection).unwrap();
        plant(&mut connection, &key);
        for i in 0..3 {
            let asked = guards.clone();
            let decision = stage.run(async move {
                let decision = one(&asked, limiter, None).await;
                assert!(asked.answered(&decision));
                decision
            });
            let wait = decision.retry_after.unwrap();
            assert!(!decision.allowed() && wait <= WINDOW && decision.reset_after <= WINDOW, "{i}: {decision:?}");
            assert!(wait > WINDOW - Duration::from_secs(5) || limiter == "address", "{i}: {decision:?}");
            assert_eq!(decision.remaining, 0, "{decision:?}");
        }
        // Mended: another value, with an end.
        stage.check_keys();
        let length: u64 = ask(&mut connection, &format!("STRLEN {key}")).unwrap();
        assert!(length >= 10, "{length} bytes are no state of ours");
        let expected =
            if is_corrupt { vec![Event::CorruptState { rule: format!("{limiter}-closed") }] } else { Vec::new() };
        stage.take_events();
        assert_eq!(stage.events, expected);
        stage.events.clear();
        stage.finish();
    }
}

macro_rules! for_each_policy {
    ($($name:ident($is_corrupt:expr) = $plant:expr;)+) => {$(
        mod $name {
            use super::*;
            #[test]
            fn strikes() { planted("login", $is_corrupt, |connection, key| $plant(connection, key, "login")); }
            #[test]
            fn fixed_window() { planted("window", $is_corrupt, |connection, key| $plant(connection, key, "window")); }
            #[test]
            fn rates() { planted("address", $is_corrupt, |connection, key| $plant(connection, key, "address")); }
        }
    )+};
}

type Server = redis::Connection;

fn put(connection: &mut Server, key: &str, value: &[u8]) {
    redis::cmd("SET").arg(key).arg(value).exec(connection).unwrap();
}

for_each_policy! {
    f20_a_value_of_another_type_counts_as_spent(true) = |connection: &mut Server, key: &str, _: &str| {
        redis::cmd("LPUSH").arg(key).arg("zzz").exec(connection).unwrap();
    };
    f20_garbage_counts_as_spent(true) = |connection: &mut Server, key: &str, _: &str| put(connection, key, b"zzz");
    f20_an_empty_value_counts_as_spent(true) = |connection: &mut Server, key: &str, _: &str| put(connection, key, b"");
    f20_a_value_of_fifty_megabytes_counts_as_spent(true) = |connection: &mut Server, key: &str, _: &str| {
        redis::cmd("SETRANGE").arg(key).arg(50_000_000).arg("z").exec(connection).unwrap();
    };
    f20_another_version_counts_as_spent(true) = |connection: &mut Server, key: &str, limiter: &str| {
        let mut value = far_future(limiter, 1);
        value[0] = 2;
        put(connection, key, &value);
    };
    f20_a_time_that_is_no_number_counts_as_spent(true) = |connection: &mut Server, key: &str, limiter: &str| {
        let mut value = far_future(limiter, 1);
        let at = if limiter == "login" { 2 } else { 1 };
        value[at..at + 8].copy_from_slice(&f64::NAN.to_be_bytes());
        put(connection, key, &value);
    };
    f20_a_time_of_ten_years_ahead_locks_for_one_window(false) = |connection: &mut Server, key: &str, limiter: &str| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        put(connection, key, &far_future(limiter, u64::try_from(now.as_micros()).unwrap() + YEARS));
    };
    f20_a_time_beyond_all_bounds_counts_as_spent(true) = |connection: &mut Server, key: &str, limiter: &str| {
        put(connection, key, &far_future(limiter, 1 << 53));
    };
}

#[test]
fn f20_a_corrupt_key_among_others_is_told_by_its_own_rule_and_once() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    let guards = stage.closed().clone();
    let asked = guards.clone();
    stage.run(async move { assert!(asked.limiter.decide(&asked.keys(), 1, None).await.unwrap().allowed()) });
    let key = key_of(&stage, "address");
    put(&mut stage.connection(), &key, b"zzz");
    stage.run(async move {
        for _ in 0..3 {
            let peeked = guards.limiter.peek(&guards.keys(), 1, None).await.unwrap();
            assert!(!peeked.allowed(), "{peeked:?}");
        }
        for _ in 0..3 {
            let decision = guards.limiter.decide(&guards.keys(), 1, None).await.unwrap();
            assert_eq!(decision.rule.as_deref(), Some("address-closed"), "{decision:?}");
        }
    });
    stage.take_events();
    assert_eq!(stage.events, [Event::CorruptState { rule: "address-closed".to_owned() }]);
    stage.finish();
}

/// What the server sent so far, to everybody.
fn sent(connection: &mut Server) -> u64 {
    let stats: String = ask(connection, "INFO stats").unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap();
    line.trim().parse().unwrap()
}

/// The most memory that the server ever took: copies show there.
fn peak(connection: &mut Server) -> u64 {
    let memory: String = ask(connection, "INFO memory").unwrap();
    memory.lines().find_map(|line| line.strip_prefix("used_memory_peak:")).unwrap().trim().parse().unwrap()
}

#[test]
fn f20_a_huge_value_is_neither_sent_nor_read_whole() {
    for engine in [Engine::Redis, Engine::Valkey] {
        for limiter in ["login", "window", "address"] {
            let stage = Stage::new(engine, &[], Road::Proxy);
            let guards = stage.closed().clone();
            let asked = guards.clone();
            assert!(stage.run(async move { one(&asked, limiter, None).await }).allowed());
            let (key, mut connection) = (key_of(&stage, limiter), stage.connection());
            redis::cmd("SETRANGE").arg(&key).arg(50_000_000).arg("z").exec(&mut connection).unwrap();
            let before = (sent(&mut connection), peak(&mut connection));
            let asked = guards.clone();
            stage.run(async move {
                match limiter {
                    "login" => {
                        assert!(asked.strikes.locked("ann", None).await.unwrap());
                        // What does not stand is not settled either, and not read whole for that.
                        asked.strikes.refund("ann", None).await.unwrap();
                    }
                    "window" => assert!(!asked.window.consume("ann", None).await.unwrap().allowed()),
                    _ => assert!(!asked.limiter.peek(&asked.keys()[1..], 1, None).await.unwrap().allowed()),
                }
            });
            let (sent, peak) = (sent(&mut connection) - before.0, peak(&mut connection) - before.1);
            assert!(sent < 30_000, "{limiter} on {engine:?}: {sent} bytes were sent");
            assert!(peak < 10_000_000, "{limiter} on {engine:?}: {peak} bytes were copied");
            let length: u64 = ask(&mut connection, &format!("STRLEN {key}")).unwrap();
            let mended = limiter == "window";
            assert_eq!(length, if mended { 13 } else { 50_000_001 }, "who only asks mends nothing");
        }
    }
}

#[test]
fn f20_a_state_that_a_full_server_does_not_let_us_mend_still_denies() {
    for engine in [Engine::Redis, Engine::Valkey] {
        for limiter in ["login", "window", "address"] {
            let stage = Stage::new(engine, &[], Road::Proxy);
            let guards = stage.closed().clone();
            let asked = guards.clone();
            assert!(stage.run(async move { one(&asked, limiter, None).await }).allowed());
            put(&mut stage.connection(), &key_of(&stage, limiter), b"zzz");
            stage.tell("CONFIG SET maxmemory 1");
            for _ in 0..3 {
                let asked = guards.clone();
                let decision = stage.run(async move { one(&asked, limiter, None).await });
                assert!(!decision.allowed() && decision.retry_after.is_some(), "{limiter}: {decision:?}");
            }
        }
    }
}

#[test]
fn s09_a_key_whose_end_was_taken_works_again_within_one_window() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Proxy);
        let guards = stage.closed().clone();
        let second = Duration::from_secs(1);
        let strikes = doorkeep::Strikes { threshold: 2, lockout_window: second, max_tracked_keys: 10 };
        let limiter = AttemptLimiter::new(&stage.store, "kept", strikes, None).unwrap();
        let limiter = std::sync::Arc::new(limiter);
        let asked = std::sync::Arc::clone(&limiter);
        stage.run(async move { while asked.decide("ann", None).await.unwrap().allowed() {} });
        let keys: Vec<String> = stage.ask("KEYS ratelimit:{kept:*").unwrap();
        stage.tell(&format!("PERSIST {}", keys[0]));
        stage.run(async move {
            let wait = limiter.retry_after("ann", None).await.unwrap().expect("it is locked still");
            tokio::time::sleep(wait).await;
            assert!(limiter.decide("ann", None).await.unwrap().allowed(), "a lost end is harmless");
        });
        let ttl: i64 = stage.ask(&format!("PTTL {}", keys[0])).unwrap();
        assert!(ttl > 0, "the next write gives an end again, PTTL is {ttl}");
        drop(guards);
        stage.finish();
    }
}

/// Attempts under a clock that jumps, every wait at most one window once the state is healed.
fn clock_jumps(by: i64) {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Proxy);
        for limiter in ["login", "address"] {
            let guards = stage.closed().clone();
            stage.run(async move {
                let noon: u64 = 1_700_000_000_000_000;
                let at = |us: u64| Some(Timestamp::from_micros(us).unwrap());
                // 1000 a minute at 3 at once, or five strikes.
                let cost = if limiter == "login" { STRIKES } else { 1000 };
                for _ in 0..cost {
                    assert!(one(&guards, limiter, at(noon)).await.allowed());
                }
                assert!(!one(&guards, limiter, at(noon)).await.allowed());
                let then = noon.checked_add_signed(by).unwrap();
                let decision = one(&guards, limiter, at(then)).await;
                if by > 0 {
                    assert!(decision.allowed(), "{limiter}: a window has passed, {decision:?}");
                } else {
                    let wait = decision.retry_after.unwrap();
                    assert!(!decision.allowed() && Duration::ZERO < wait && wait <= WINDOW, "{limiter}: {decision:?}");
                    let wait = u64::try_from(wait.as_micros()).unwrap();
                    assert!(!one(&guards, limiter, at(then + wait - 1)).await.allowed());
                    assert!(one(&guards, limiter, at(then + wait)).await.allowed());
                }
            });
        }
        // With an explicit now no key lives shorter than ten minutes of the server's time.
        for key in stage.ask::<Vec<String>>("KEYS ratelimit:*").unwrap() {
            let ttl: i64 = stage.ask(&format!("PTTL {key}")).unwrap();
            assert!(0 < ttl && ttl <= 600_001, "I8: {key} has a TTL of {ttl} ms");
            stage.tell(&format!("DEL {key}"));
        }
        stage.finish();
    }
}

#[test]
fn f21_a_clock_an_hour_back_waits_at_most_one_window() {
    clock_jumps(-3_600_000_000);
}

#[test]
fn f22_a_clock_an_hour_ahead_refills() {
    clock_jumps(3_600_000_000);
}

#[test]
fn f21_a_clock_a_second_back_ends_nothing_early() {
    let stage = Stage::new(Engine::Valkey, &[], Road::Proxy);
    let guards = stage.closed().clone();
    stage.run(async move {
        let at = |us: u64| Some(Timestamp::from_micros(us).unwrap());
        let noon: u64 = 1_700_000_000_000_000;
        for _ in 0..STRIKES {
            assert!(one(&guards, "login", at(noon)).await.allowed());
        }
        let decision = one(&guards, "login", at(noon - 1_000_000)).await;
        assert_eq!(decision.retry_after, Some(WINDOW + Duration::from_secs(1)));
        let end = noon + 60_000_000;
        assert!(!one(&guards, "login", at(end - 1)).await.allowed());
        assert!(one(&guards, "login", at(end)).await.allowed());
    });
    for key in stage.ask::<Vec<String>>("KEYS ratelimit:*").unwrap() {
        stage.tell(&format!("DEL {key}"));
    }
    stage.finish();
}

#[test]
fn f21_the_clock_of_the_client_decides_where_it_was_chosen() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        let url = format!("redis://:{}@127.0.0.1:{}/0", crate::stage::PASSWORD, stage.server.port());
        let options = StoreOptions {
            clock: StoreClock::Client,
            prefix: "by-client".to_owned(),
            on_error: OnError::Closed,
            ..StoreOptions::default()
        };
        let store = RedisStore::new(&url, options).unwrap();
        stage.run(async move {
            let strikes = doorkeep::Strikes { threshold: 2, lockout_window: WINDOW, max_tracked_keys: 10 };
            let limiter = AttemptLimiter::new(&store, "login", strikes, None).unwrap();
            while limiter.decide("ann", None).await.unwrap().allowed() {}
            let wait = limiter.retry_after("ann", None).await.unwrap().unwrap();
            assert!(WINDOW - Duration::from_secs(5) < wait && wait <= WINDOW, "{wait:?}");
        });
        let keys: Vec<String> = stage.ask("KEYS by-client:*").unwrap();
        let ttl: i64 = stage.ask(&format!("PTTL {}", keys[0])).unwrap();
        assert!(590_000 < ttl && ttl <= 600_001, "I8: {ttl} ms, virtual time may stand still");
    }
}
