//! Replies that come late or not at all, and many callers at once.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use doorkeep::redis::{AttemptLimiter, FixedWindow, Limiter, TokenBucket};
use doorkeep::{OnError, Outcome, Rule, Strikes};

use crate::proxy::Fault;
use crate::rows::is_without_store;
use crate::server::Engine;
use crate::stage::{AT_ONCE, Road, SLACK, Stage, TIMEOUT, WINDOW, in_time};

/// As many admitted attempts as the threshold allows, asked by many at once.
fn flock(stage: &Stage, limiter: &Arc<AttemptLimiter>, callers: u32, each: u32) -> [u32; 3] {
    let limiter = Arc::clone(limiter);
    stage.run(async move {
        let callers: Vec<_> = (0..callers)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move {
                    let mut seen = [0; 3];
                    for _ in 0..each {
                        let decision = in_time("decide", TIMEOUT + SLACK, limiter.decide("ann", None)).await.unwrap();
                        assert!(!is_without_store(&decision), "{decision:?}");
                        seen[decision.outcome as usize] += 1;
                    }
                    seen
                })
            })
            .collect();
        let mut total = [0; 3];
        for caller in callers {
            let seen = caller.await.unwrap();
            (0..3).for_each(|i| total[i] += seen[i]);
        }
        total
    })
}

#[test]
fn s36_scripts_forgotten_under_twenty_callers_are_not_noticed() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Proxy);
        let strikes = Strikes { threshold: 150, lockout_window: WINDOW, max_tracked_keys: 10 };
        let limiter = Arc::new(AttemptLimiter::new(&stage.store, "flushed", strikes, None).unwrap());
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let seen = thread::scope(|scope| {
            scope.spawn(|| {
                let mut connection = stage.connection();
                while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    let () = crate::stage::ask(&mut connection, "SCRIPT FLUSH").unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let seen = flock(&stage, &limiter, 20, 25);
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            seen
        });
        assert_eq!(seen, [350, 149, 1], "denied, allowed, allowed last");
        assert_eq!(stage.store.take_events(), []);
        stage.finish();
    }
}

#[test]
fn s33_a_hundred_calls_against_a_silent_server_take_one_timeout() {
    let mut stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    assert!(stage.wait_for_the_store() < Duration::from_secs(1));
    stage.proxy.set(Fault::Stall);
    let start = Instant::now();
    let guards = stage.closed().clone();
    stage.run(async move {
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let guards = guards.clone();
                tokio::spawn(async move { assert_eq!(guards.tally().await, None) })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let all = start.elapsed();
        assert!(all <= TIMEOUT + SLACK, "100 calls took {all:?}");
        let next = Instant::now();
        assert_eq!(guards.tally().await, None);
        assert!(next.elapsed() <= AT_ONCE, "the next call took {:?}", next.elapsed());
    });
    stage.proxy.set(Fault::Pass);
    let took = stage.wait_for_the_store();
    assert!(took < Duration::from_millis(2200), "I6: the store was used again only after {took:?}");
    stage.take_events();
    assert_eq!(stage.events.len(), 2, "{:?}", stage.events);
    stage.finish();
}

#[test]
fn f02_a_silent_connection_is_given_up_after_two_timeouts() {
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    stage.wait_for_the_store();
    assert_eq!(stage.proxy.accepted(), 1);
    stage.proxy.set(Fault::Stall);
    stage.wait_for_the_fault();
    let start = Instant::now();
    while stage.proxy.accepted() == 1 {
        assert!(start.elapsed() < Duration::from_secs(4), "the silent connection is kept");
        thread::sleep(Duration::from_millis(20));
    }
    stage.proxy.set(Fault::Pass);
    stage.wait_for_the_store();
    stage.finish();
}

#[test]
fn f02_late_replies_are_never_taken_for_new_ones() {
    let stage = Stage::new(Engine::Valkey, &[], Road::Proxy);
    let guards = stage.closed().clone();
    let keys = guards.clone();
    stage.run(async move { assert_eq!(keys.admitted("locked-out").await, 5) });
    // Each reply comes after its caller has left, in the time of somebody else.
    for round in 0..4 {
        stage.proxy.set(Fault::Delay(TIMEOUT + Duration::from_millis(60), TIMEOUT + Duration::from_millis(60)));
        let late = guards.clone();
        stage.run(async move {
            let decision = late.attempt("locked-out").await;
            assert!(is_without_store(&decision), "{decision:?}");
        });
        stage.proxy.set(Fault::Pass);
        stage.wait_for_the_store();
        let fresh = guards.clone();
        stage.run(async move {
            for i in 0..20 {
                let key = format!("fresh-{round}-{i}");
                assert!(fresh.attempt(&key).await.allowed(), "{key} was given the answer for the locked key");
                assert!(!fresh.attempt("locked-out").await.allowed(), "the locked key was given the answer for {key}");
            }
        });
    }
    stage.finish();
}

#[test]
fn f29_an_attempt_whose_reply_is_lost_is_counted_once() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Proxy);
        stage.wait_for_the_store();
        let counted = |key: &str| -> usize {
            let keys: Vec<String> = stage.ask(&format!("KEYS ratelimit:{{{key}-closed:*")).unwrap();
            keys.first().map_or(0, |key| (stage.ask::<Vec<u8>>(&format!("GET {key}")).unwrap().len() - 10) / 8)
        };
        stage.proxy.set(Fault::DropDown);
        let guards = stage.closed().clone();
        let reservation = stage.run(async move {
            let (decision, reservation) = guards.strikes.reserve("ann", None).await.unwrap();
            assert!(!guards.answered(&decision) && decision.outcome == Outcome::Denied, "{decision:?}");
            reservation
        });
        assert_eq!(counted("login"), 1, "the server has counted what it was sent");
        stage.proxy.set(Fault::Pass);
        stage.wait_for_the_store();
        let guards = stage.closed().clone();
        stage.run(async move {
            // Unavailable: there is nothing to cancel, and the attempt stays counted.
            assert_eq!(guards.strikes.cancel(reservation, None).await.as_str(), "nothing");
            assert_eq!(guards.admitted("ann").await, 4);
        });
        assert_eq!(counted("login"), 5);
        stage.finish();
    }
}

/// Attempts of these kinds carry no id by which the server would know one that comes twice.
#[test]
fn f29_a_lost_reply_takes_one_from_a_rate_a_bucket_and_a_window() {
    let stage = Stage::new(Engine::Valkey, &[], Road::Proxy);
    let hour = Duration::from_secs(3600);
    let closed = Some(OnError::Closed);
    let keys = [Rule::new("slow", "10/1h".parse().unwrap()).unwrap().key(&[b"ann"]).unwrap()];
    let limiter = Limiter::new(&stage.store, closed, 100).unwrap();
    let bucket = Arc::new(TokenBucket::new(&stage.store, "bucket", (10, hour, 10), closed).unwrap());
    let window = Arc::new(FixedWindow::new(&stage.store, "window", (10, hour, 10), closed).unwrap());
    for fault in [Fault::DropDown, Fault::Rst, Fault::Delay(TIMEOUT * 2, TIMEOUT * 2)] {
        let (limiter, keys) = (limiter.clone(), keys.clone());
        let (bucket, window) = (Arc::clone(&bucket), Arc::clone(&window));
        let ask = async move || {
            let (allowed, taken, consumed) =
                tokio::join!(limiter.decide(&keys, 1, None), bucket.allow("ann", None), window.consume("ann", None));
            [allowed.unwrap().allowed(), taken, consumed.unwrap().allowed()]
        };
        let (first, then) = (ask.clone(), ask);
        stage.wait_for_the_store();
        stage.proxy.set(fault);
        assert_eq!(stage.run(async move { first().await }), [false; 3], "nobody answers");
        stage.proxy.set(Fault::Pass);
        stage.wait_for_the_store();
        let left = stage.run(async move {
            let mut left = [0; 3];
            for _ in 0..11 {
                let admitted = then().await;
                (0..3).for_each(|kind| left[kind] += u32::from(admitted[kind]));
            }
            left
        });
        // What never left was not counted; what was counted was counted once.
        let is_once = |left: u32| left == 9 || fault == Fault::Rst && left == 10;
        assert!(left.into_iter().all(is_once), "{left:?} of 10 are left after {fault:?}");
        stage.tell("FLUSHALL");
    }
}

#[test]
fn f29_an_attempt_that_is_lost_on_its_way_is_not_sent_again() {
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    stage.wait_for_the_store();
    stage.proxy.set(Fault::DropUp);
    let guards = stage.closed().clone();
    stage.run(async move { assert!(is_without_store(&guards.attempt("ann").await)) });
    stage.proxy.set(Fault::Pass);
    stage.wait_for_the_store();
    let guards = stage.closed().clone();
    stage.run(async move { assert_eq!(guards.admitted("ann").await, 5, "nothing was counted") });
    stage.finish();
}

#[test]
fn s34_a_denial_by_the_store_is_never_asked_again_here() {
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    let strikes = Strikes { threshold: 2, lockout_window: WINDOW, max_tracked_keys: 100 };
    let limiter = Arc::new(AttemptLimiter::new(&stage.store, "denied", strikes, None).unwrap());
    assert_eq!(flock(&stage, &limiter, 1, 3), [1, 1, 1]);
    assert_eq!(limiter.len(), 0, "this process's own table was asked");
    stage.finish();
}

#[test]
fn f25_a_caller_that_leaves_stays_counted_and_leaves_the_connection_usable() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::new(engine, &[], Road::Proxy);
        stage.wait_for_the_store();
        let slow = Duration::from_millis(60);
        stage.proxy.set(Fault::Delay(slow, slow));
        let guards = stage.closed().clone();
        stage.run(async move {
            for _ in 0..2 {
                let left = tokio::time::timeout(Duration::from_millis(15), guards.strikes.decide("ann", None)).await;
                assert!(left.is_err(), "the reply was not slow");
            }
            assert_eq!(guards.admitted("ann").await, 3, "two of five were counted");
        });
        stage.take_events();
        assert_eq!((stage.events.len(), stage.proxy.accepted()), (0, 1), "{:?}", stage.events);
        stage.finish();
    }
}

#[test]
fn f04_a_server_far_away_is_used_though_connecting_takes_longer_than_a_call() {
    let stage = Stage::new(Engine::Redis, &[], Road::Proxy);
    // Two trips are more than the timeout, one is less: connecting and asking never fit into one deadline.
    let trip = Duration::from_millis(130);
    stage.proxy.set(Fault::Delay(trip, trip));
    let took = stage.wait_for_the_store();
    assert!(took < Duration::from_secs(6), "the store was used only after {took:?}");
    let guards = stage.closed().clone();
    stage.run(async move { assert_eq!(guards.tally().await, Some(true)) });
    stage.finish();
}
