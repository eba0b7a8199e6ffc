//! Faults that come and go (F05), name servers (F23), eviction (F09) and a failover that loses writes (F16).

use std::thread;
use std::time::{Duration, Instant};

use crate::proxy::{Fault, Proxy};
use crate::rows::is_without_store;
use crate::server::{Engine, Server};
use crate::stage::{PASSWORD, Road, STRIKES, Stage, kinds};

#[test]
fn f05_a_flapping_network_tells_two_lines_a_transition_and_keeps_the_bound() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    stage.wait_for_the_store();
    let (guards, start) = (stage.local().clone(), Instant::now());
    let calls = thread::scope(|scope| {
        let (stage, guards) = (&stage, guards);
        let calls = scope.spawn(move || {
            stage.run(async move {
                let mut admitted = 0;
                while start.elapsed() < Duration::from_millis(4200) {
                    admitted += u32::from(guards.attempt("ann").await.allowed());
                    tokio::time::sleep(Duration::from_millis(4)).await;
                }
                admitted
            })
        });
        for i in 0..8 {
            stage.proxy.set(if i % 2 == 0 { Fault::Rst } else { Fault::Pass });
            thread::sleep(Duration::from_millis(500));
        }
        calls.join().unwrap()
    });
    stage.proxy.set(Fault::Pass);
    stage.wait_for_the_store();
    stage.take_events();
    let seen = kinds(&stage.events);
    let (downs, ups) = (seen["down"], seen["up"]);
    assert!(downs == ups && downs <= 4 && seen.len() == 2, "I5: four outages, {:?}", stage.events);
    let bound = STRIKES * (1 + u32::try_from(downs).unwrap());
    assert!(calls <= bound, "I1: {calls} admitted, at most {bound} may be");
    stage.finish();
}

#[test]
fn f23_a_name_that_does_not_resolve_is_a_failure_within_the_timeout() {
    let server = Server::start_with(Engine::Redis, &["--requirepass", PASSWORD]);
    let proxy = Proxy::before(server.port());
    let mut stage = Stage::on(server, proxy, &format!("redis://:{PASSWORD}@no-such-host.invalid:6379/0"));
    for guards in stage.guards.clone() {
        stage.run(async move {
            assert!(is_without_store(&guards.attempt("ann").await));
            guards.every_call_is_answered_without_the_store(crate::stage::TIMEOUT + crate::stage::SLACK).await;
        });
    }
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("down", 1)].into());
    stage.finish();
}

#[test]
fn f09_an_evicting_server_is_told_once_and_each_eviction_admits_one_budget_more() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::new(engine, &["--maxmemory-policy", "allkeys-lru"], Road::Proxy);
        stage.lost = 1;
        // Little more than an empty server needs.
        let memory: String = stage.ask("INFO memory").unwrap();
        let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        stage.tell(&format!("CONFIG SET maxmemory {}", used.trim().parse::<u64>().unwrap() + 1_500_000));
        let guards = stage.closed().clone();
        let (admitted, evictions) = stage.run(async move {
            let (mut admitted, mut evictions) = (0, 0);
            for i in 0..12_000 {
                // Where memory is so short a server may refuse before it evicts.
                guards.answered(&guards.window.consume(i.to_string(), None).await.unwrap());
                if i % 400 == 0 {
                    let passed = guards.admitted("ann").await;
                    evictions += u32::from(passed > 0);
                    admitted += passed;
                }
            }
            (admitted, evictions)
        });
        assert!(evictions > 0, "nothing was evicted");
        assert!(admitted <= STRIKES * evictions, "I1: {admitted} admitted, {evictions} losses");
        stage.take_events();
        let seen = kinds(&stage.events);
        assert!(seen["evicts"] == 1 && seen.get("refused").is_none_or(|told| *told == 1), "{:?}", stage.events);
        assert!(format!("{:?}", stage.events).contains("allkeys-lru"));
        stage.finish();
    }
}

#[test]
fn f16_a_failover_that_loses_writes_admits_one_budget_more() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::new(engine, &["--repl-diskless-sync-delay", "0"], Road::Proxy);
        let link = Proxy::before(stage.server.port());
        let primary = link.port().to_string();
        let replica = Server::start_with(
            engine,
            &["--requirepass", PASSWORD, "--masterauth", PASSWORD, "--replicaof", "127.0.0.1", &primary],
        );
        let before = stage.local().clone();
        let mut admitted = stage.run(async move {
            assert_eq!(before.admitted("locked-out").await, STRIKES);
            u32::from(before.attempt("ann").await.allowed())
        });
        let keys = |server: &Server| -> u64 {
            let url = format!("redis://:{PASSWORD}@127.0.0.1:{}/0", server.port());
            redis::cmd("DBSIZE").query(&mut redis::Client::open(url).unwrap().get_connection().unwrap()).unwrap_or(0)
        };
        let start = Instant::now();
        while keys(&replica) < 2 {
            assert!(start.elapsed() < Duration::from_secs(8), "the replica does not follow");
            thread::sleep(Duration::from_millis(20));
        }
        link.set(Fault::Stall);
        let lagging = stage.local().clone();
        admitted += stage.run(async move { lagging.admitted("ann").await });
        assert_eq!(admitted, STRIKES);
        // The primary dies; its replica, four attempts behind, takes over.
        stage.server.kill();
        let promoted = stage.server.port();
        stage.server = replica;
        stage.tell("REPLICAOF NO ONE");
        assert_ne!(stage.server.port(), promoted);
        stage.proxy.lead_to(stage.server.port());
        stage.proxy.set(Fault::Rst);
        thread::sleep(Duration::from_millis(20));
        stage.proxy.set(Fault::Pass);
        stage.lost = 1;
        let after = stage.local().clone();
        admitted += stage.run(async move {
            assert!(!after.attempt("locked-out").await.allowed(), "what was replicated stands");
            after.admitted("ann").await
        });
        assert!(admitted <= 2 * STRIKES, "I1: {admitted} admitted: a budget and a loss allow {}", 2 * STRIKES);
        stage.take_events();
        assert_eq!(stage.events, [], "nobody asked meanwhile: the failover is no outage");
        stage.finish();
    }
}

#[test]
fn s35_a_store_that_is_down_from_the_start_is_no_error() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Port);
    stage.server.kill();
    for guards in stage.guards.clone() {
        stage.run(async move {
            assert!(is_without_store(&guards.attempt("ann").await));
            for _ in 0..3 {
                guards.every_call_is_answered_without_the_store(crate::stage::AT_ONCE).await;
            }
        });
    }
    assert!(stage.local().kept_here() > 0);
    stage.server.restart();
    stage.wait_for_the_store();
    assert_eq!(stage.local().kept_here(), 0, "local state is void once the store is back");
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("down", 1), ("up", 1)].into());
    stage.store.close();
    let guards = stage.closed().clone();
    stage.run(async move { guards.every_call_is_answered_without_the_store(crate::stage::AT_ONCE).await });
    stage.finish();
}

#[test]
fn s32_what_one_outage_counted_here_does_not_deny_in_the_next() {
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    for _ in 0..2 {
        stage.wait_for_the_store();
        stage.proxy.set(Fault::Rst);
        stage.wait_for_the_fault();
        let guards = stage.local().clone();
        stage.run(async move { assert_eq!(guards.admitted("ann").await, STRIKES) });
        stage.proxy.set(Fault::Pass);
    }
    stage.wait_for_the_store();
    stage.finish();
}
