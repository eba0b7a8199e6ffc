//! Connections that end while nothing is under way: nobody notices (F31 to F37). And the opposite: a
//! connection that is cut under a call is an outage, and the call is never sent again (F38).
//!
//! Invariant: what ends a connection here touches no key, so every verdict must go on as it was.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use doorkeep::host::runtime;
use doorkeep::redis::{AttemptLimiter, RedisStore, StoreOptions};
use doorkeep::{Decision, OnError, Reason, Strikes};
use tokio::runtime::Builder;

use crate::proxy::{Fault, Loss};
use crate::server::Engine;
use crate::stage::{Guards, PASSWORD, Road, SLACK, STRIKES, Stage, TIMEOUT, WINDOW, in_time, kinds};

/// Longer than a connection may be silent before it is asked.
const LONG: Duration = Duration::from_millis(5200);
const URL: &str = "DOORKEEP_TEST_URL";

/// Locks ann out under every `on_error`, and sees all calls answered.
fn lock(stage: &Stage) {
    for guards in stage.guards.clone() {
        stage.run(async move {
            guards.every_call_is_answered().await;
            assert_eq!(guards.admitted("ann").await, STRIKES);
            assert_eq!(guards.tally().await, Some(true));
        });
    }
}

fn is_locked(decision: &Decision) {
    assert_eq!((decision.reason, decision.degraded), (Some(Reason::Locked), false), "{decision:?}");
}

async fn goes_on(guards: &Guards) {
    is_locked(&guards.attempt("ann").await);
    assert_eq!(guards.tally().await, Some(true));
    guards.every_call_is_answered().await;
}

/// Ends the connection before the first call of each of some modes: the verdicts go on, one connection is made for
/// each end, and nobody is told.
fn unnoticed(engine: Engine, modes: usize, end: impl Fn(&mut Stage)) -> Stage {
    let mut stage = Stage::new(engine, &[], Road::Proxy);
    lock(&stage);
    for (ends, guards) in (1..=modes).zip(stage.guards.clone()) {
        end(&mut stage);
        stage.run(async move { goes_on(&guards).await });
        assert_eq!(stage.proxy.accepted(), 1 + ends, "one connection for each that ended");
    }
    stage.take_events();
    assert_eq!(stage.events, [], "I5: an idle connection that ends is no event");
    stage
}

/// Waits until the server has no clients but the one that asks.
fn wait_until_alone(stage: &Stage) {
    let (start, mut connection) = (Instant::now(), stage.connection());
    loop {
        let clients: String = crate::stage::ask(&mut connection, "CLIENT LIST TYPE normal").unwrap();
        if clients.lines().count() == 1 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "the server keeps its clients: {clients}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn kill_clients(stage: &Stage) {
    stage.ask::<u64>("CLIENT KILL TYPE normal SKIPME yes").unwrap();
    wait_until_alone(stage);
    idle_for_a_moment();
}

/// Ends reach the client's system in that time, and a connection in use is no idle one.
fn idle_for_a_moment() {
    thread::sleep(Duration::from_millis(5));
}

#[test]
fn f31_a_client_that_was_killed_while_idle_is_not_noticed() {
    for engine in [Engine::Redis, Engine::Valkey] {
        unnoticed(engine, 3, |stage| kill_clients(stage)).finish();
    }
}

#[test]
fn f32_a_server_that_closes_idle_clients_is_not_noticed() {
    for engine in [Engine::Redis, Engine::Valkey] {
        // Only while nothing is asked: a slow test must not be an idle client.
        let end = |stage: &mut Stage| {
            stage.tell("CONFIG SET timeout 1");
            wait_until_alone(stage);
            stage.tell("CONFIG SET timeout 0");
        };
        // One mode: each end takes a second or two.
        unnoticed(engine, 1, end).finish();
    }
}

#[test]
fn f33_a_server_that_was_restarted_with_its_data_is_not_noticed() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let end = |stage: &mut Stage| {
            // It answers by going away.
            stage.ask::<()>("SHUTDOWN SAVE").unwrap_err();
            stage.server.wait();
            stage.server.restart();
        };
        unnoticed(engine, 3, end).finish();
    }
}

#[test]
fn f33_a_server_that_was_restarted_empty_is_no_outage() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Port);
    lock(&stage);
    stage.server.kill();
    stage.server.restart();
    stage.lost = 1;
    let guards = stage.closed().clone();
    stage.run(async move { assert_eq!(guards.admitted("ann").await, STRIKES) });
    stage.take_events();
    assert_eq!(stage.events, []);
    stage.finish();
}

#[test]
fn f34_a_connection_that_a_middlebox_forgot_is_not_noticed() {
    // One mode: each end takes the time after which a silent connection is asked.
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    lock(&stage);
    stage.proxy.lose(Loss::Forgotten);
    thread::sleep(LONG);
    let guards = stage.local().clone();
    stage.run(async move { goes_on(&guards).await });
    assert_eq!(stage.proxy.accepted(), 2);
    assert_eq!(stage.proxy.swallowed(), b"*1\r\n$4\r\nPING\r\n".len(), "only the question was written there");
    stage.take_events();
    assert_eq!(stage.events, []);
    stage.finish();
}

#[test]
fn f34_a_burst_on_a_forgotten_connection_asks_once_and_connects_once() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    lock(&stage);
    stage.proxy.lose(Loss::Forgotten);
    thread::sleep(LONG);
    burst(&mut stage);
    assert_eq!(stage.proxy.swallowed(), b"*1\r\n$4\r\nPING\r\n".len());
    stage.finish();
}

#[test]
fn f35_a_silent_connection_that_stands_is_kept() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::new(engine, &[], Road::Proxy);
        lock(&stage);
        thread::sleep(LONG);
        // Slower than the question may wait alone, and still within the deadline.
        stage.tell("CLIENT PAUSE 90");
        let guards = stage.closed().clone();
        stage.run(async move { goes_on(&guards).await });
        let stats: String = stage.ask("INFO commandstats").unwrap();
        assert!(stats.contains("cmdstat_ping:calls=1,"), "it was asked once: {stats}");
        stage.take_events();
        assert_eq!(stage.events, []);
        stage.finish();
    }
}

#[test]
fn f35_a_user_who_may_not_ping_is_answered_all_the_same() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    lock(&stage);
    stage.tell("ACL SETUSER default -ping");
    thread::sleep(LONG);
    let guards = stage.closed().clone();
    stage.run(async move { goes_on(&guards).await });
    assert_eq!(stage.proxy.accepted(), 1, "a refusal is an answer");
    stage.take_events();
    assert_eq!(stage.events, []);
    stage.finish();
}

#[test]
fn f36_a_connection_closed_by_half_is_not_noticed() {
    let stage = unnoticed(Engine::Redis, 3, |stage| {
        stage.proxy.lose(Loss::HalfClosed);
        idle_for_a_moment();
    });
    assert_eq!(stage.proxy.swallowed(), 0, "nothing was written after the end was seen");
    stage.finish();
}

/// Fifty calls at once on a connection that is gone: all are answered, over one connection more.
fn burst(stage: &mut Stage) {
    let guards = stage.closed().clone();
    stage.run(async move {
        let calls: Vec<_> = (0..50)
            .map(|i| {
                let guards = guards.clone();
                tokio::spawn(async move {
                    if i % 2 == 0 {
                        is_locked(&guards.attempt("ann").await);
                    } else {
                        assert_eq!(guards.tally().await, Some(true));
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    });
    assert_eq!(stage.proxy.accepted(), 2, "one connection more, for all");
    stage.take_events();
    assert_eq!(stage.events, []);
}

#[test]
fn f37_a_burst_on_a_connection_that_ended_makes_one_more() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::new(engine, &[], Road::Proxy);
        lock(&stage);
        kill_clients(&stage);
        burst(&mut stage);
        stage.finish();
    }
}

#[test]
fn f37_a_burst_that_comes_before_the_end_was_seen_makes_one_more() {
    // Nobody lets this runtime look at its sockets between the calls: the end waits in the system's queue.
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let store = store(&format!("redis://:{PASSWORD}@127.0.0.1:{}/0", stage.proxy.port()));
    let limiter = limiter(&store);
    assert_eq!(runtime.block_on(limiter.decide("ann", None)).unwrap().remaining, 99);
    for round in 1..=10 {
        kill_clients(&stage);
        runtime.block_on(async {
            let calls: Vec<_> = (0..5)
                .map(|_| {
                    let limiter = limiter.clone();
                    tokio::spawn(async move { limiter.decide("ann", None).await.unwrap() })
                })
                .collect();
            for call in calls {
                let decision = call.await.unwrap();
                assert!(decision.allowed() && !decision.degraded, "{decision:?}");
            }
        });
        assert_eq!(stage.proxy.accepted(), 1 + round);
    }
    assert_eq!(store.take_events(), []);
    let last = runtime.block_on(limiter.decide("ann", None)).unwrap();
    assert_eq!(last.remaining, 100 - 1 - 50 - 1, "each call was counted once");
}

#[test]
fn f37_a_store_outlives_the_runtime_of_its_connection() {
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    let store = store(&format!("redis://:{PASSWORD}@127.0.0.1:{}/0", stage.proxy.port()));
    let limiter = limiter(&store);
    for count in 1..=3 {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let decision = runtime.block_on(limiter.decide("ann", None)).unwrap();
        assert_eq!((decision.remaining, decision.degraded), (100 - count, false), "{decision:?}");
    }
    assert_eq!(store.take_events(), []);
}

fn store(url: &str) -> RedisStore {
    let options = StoreOptions { timeout: TIMEOUT, on_error: OnError::Local, ..StoreOptions::default() };
    RedisStore::new(url, options).unwrap()
}

fn limiter(store: &RedisStore) -> std::sync::Arc<AttemptLimiter> {
    let strikes = Strikes { threshold: 100, lockout_window: WINDOW, max_tracked_keys: 10 };
    std::sync::Arc::new(AttemptLimiter::new(store, "frozen", strikes, None).unwrap())
}

#[test]
#[ignore = "run by the next test, in a process of its own"]
fn a_client_that_will_be_frozen() {
    let store = store(&std::env::var(URL).unwrap());
    let limiter = limiter(&store);
    for line in std::io::stdin().lock().lines() {
        assert_eq!(line.unwrap(), "ask");
        let call = async {
            let decision = in_time("decide", TIMEOUT + SLACK, limiter.decide("ann", None)).await.unwrap();
            format!("{} {} {:?}", decision.remaining, decision.degraded, store.take_events())
        };
        // On a line of its own, whatever the runner prints before it.
        eprintln!("\nsaid {}", runtime::block_on(call));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn f37_a_process_that_was_frozen_meanwhile_does_not_notice() {
    let stage = Stage::new(Engine::Redis, &[], Road::Port);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "idle::a_client_that_will_be_frozen", "--ignored", "--nocapture"])
        .env(URL, format!("redis://:{PASSWORD}@127.0.0.1:{}/0", stage.server.port()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = || lines.by_ref().find_map(|line| line.unwrap().strip_prefix("said ").map(str::to_owned)).unwrap();
    writeln!(questions, "ask").unwrap();
    assert_eq!(said(), "99 false []");
    for round in 1..=20 {
        signal(&child, "-STOP");
        kill_clients(&stage);
        // The question waits for the process, as the end of its connection does.
        writeln!(questions, "ask").unwrap();
        signal(&child, "-CONT");
        assert_eq!(said(), format!("{} false []", 99 - round));
    }
    drop(questions);
    assert!(child.wait().unwrap().success());
}

#[test]
fn f38_a_connection_that_is_cut_under_a_call_is_an_outage_and_the_call_is_not_sent_again() {
    for (fault, ran) in [(Fault::Cut(0), 1), (Fault::CutUp(40), 0)] {
        for engine in [Engine::Redis, Engine::Valkey] {
            let mut stage = Stage::new(engine, &[], Road::Proxy);
            lock(&stage);
            stage.tell("CONFIG RESETSTAT");
            stage.proxy.set(fault);
            let guards = stage.closed().clone();
            stage.run(async move { assert_eq!(guards.tally().await, None) });
            // Long enough for whatever might be sent again, and shorter than until the probe.
            thread::sleep(TIMEOUT + Duration::from_millis(100));
            let stats: String = stage.ask("INFO commandstats").unwrap();
            let calls = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
            let calls = calls.map_or(0, |line| {
                line.split(['=', ',']).nth(1).and_then(|calls| calls.parse::<u32>().ok()).expect("a count")
            });
            assert_eq!(calls, ran, "{fault:?}: {stats}");
            assert_eq!(stage.proxy.accepted(), 1, "no other connection was made for it");
            stage.proxy.set(Fault::Pass);
            stage.wait_for_the_store();
            stage.take_events();
            assert_eq!(kinds(&stage.events), [("down", 1), ("up", 1)].into());
            stage.finish();
        }
    }
}

#[test]
fn f38_a_server_that_is_gone_when_the_connection_is_replaced_is_an_outage() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Port);
    lock(&stage);
    stage.server.kill();
    stage.lost = 1;
    thread::sleep(Duration::from_millis(50));
    let guards = stage.closed().clone();
    stage.run(async move { assert_eq!(guards.tally().await, None) });
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("down", 1)].into());
    assert!(format!("{:?}", stage.events).contains("refused"), "{:?}", stage.events);
    stage.server.restart();
    stage.wait_for_the_store();
    stage.finish();
}

#[test]
fn f38_a_server_that_closes_every_connection_is_an_outage_and_no_storm() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    lock(&stage);
    kill_clients(&stage);
    stage.proxy.set(Fault::CutUp(0));
    let guards = stage.closed().clone();
    stage.run(async move { assert_eq!(guards.tally().await, None) });
    assert_eq!(stage.proxy.accepted(), 2);
    stage.proxy.set(Fault::Pass);
    stage.wait_for_the_store();
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("down", 1), ("up", 1)].into());
    stage.finish();
}
