//! What went wrong for others, over Redis: one budget for many tasks and processes, names, ends, clocks.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use doorkeep::redis::{AttemptLimiter, FixedWindow, Limiter, RedisStore, StoreOptions, TokenBucket};
use doorkeep::{OnError, Outcome, Rule, Strikes};

use crate::server::Engine;
use crate::stage::{PASSWORD, Road, Stage, WINDOW};

const URL: &str = "DOORKEEP_TEST_URL";
const START: &str = "DOORKEEP_TEST_START";
const HOUR: Duration = Duration::from_secs(3600);

fn url(stage: &Stage) -> String {
    format!("redis://:{PASSWORD}@127.0.0.1:{}/0", stage.server.port())
}

/// A store with time to spare: what is tested is what it counts.
fn patient(url: &str) -> RedisStore {
    let options =
        StoreOptions { timeout: Duration::from_secs(20), on_error: OnError::Closed, ..StoreOptions::default() };
    RedisStore::new(url, options).unwrap()
}

/// Makes `calls` attempts of every kind at once: denied, allowed and allowed last for strikes, then what the
/// rates of a limiter, a bucket and a window admitted.
async fn rush(store: RedisStore, calls: u32) -> [u32; 6] {
    let strikes = Strikes { threshold: 5, lockout_window: HOUR, max_tracked_keys: 10 };
    let strikes = Arc::new(AttemptLimiter::new(&store, "rush", strikes, None).unwrap());
    let limiter = Limiter::new(&store, None, 100).unwrap();
    let keys = [
        Rule::new("rush-ip", "20/1h,30/1d".parse().unwrap()).unwrap().ip_key("203.0.113.9").unwrap(),
        Rule::strikes("rush-account", 7, HOUR).unwrap().key(&[b"ann"]).unwrap(),
    ];
    let bucket = Arc::new(TokenBucket::new(&store, "rush-bucket", (11, HOUR, 10), None).unwrap());
    let window = Arc::new(FixedWindow::new(&store, "rush-window", (13, HOUR, 10), None).unwrap());
    let tasks: Vec<_> = (0..calls)
        .map(|_| {
            let (strikes, limiter, keys) = (Arc::clone(&strikes), limiter.clone(), keys.clone());
            let (bucket, window) = (Arc::clone(&bucket), Arc::clone(&window));
            tokio::spawn(async move {
                let outcome = strikes.decide("ann", None).await.unwrap().outcome;
                let mut seen = [0; 6];
                seen[outcome as usize] = 1;
                seen[3] = u32::from(limiter.decide(&keys, 1, None).await.unwrap().allowed());
                seen[4] = u32::from(bucket.allow("ann", None).await);
                seen[5] = u32::from(window.consume("ann", None).await.unwrap().allowed());
                seen
            })
        })
        .collect();
    let mut total = [0; 6];
    for task in tasks {
        let seen = task.await.unwrap();
        (0..6).for_each(|i| total[i] += seen[i]);
    }
    assert_eq!(store.take_events(), []);
    total
}

#[test]
fn s01_of_five_hundred_tasks_exactly_the_budget_is_admitted() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        let store = patient(&url(&stage));
        assert_eq!(stage.run(rush(store, 500)), [495, 4, 1, 7, 11, 13]);
    }
}

#[test]
#[ignore = "run by the next test, in processes of their own"]
fn a_worker() {
    let start = Duration::from_millis(std::env::var(START).unwrap().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = patient(&std::env::var(URL).unwrap());
    std::thread::sleep(start.saturating_sub(SystemTime::now().duration_since(UNIX_EPOCH).unwrap()));
    let seen = runtime.block_on(rush(store, 125));
    // On a line of its own, whatever the runner prints before it.
    eprintln!("\nseen {}", seen.map(|count| count.to_string()).join(" "));
}

#[test]
fn s01_of_four_processes_exactly_the_budget_is_admitted() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_millis(400);
        let workers: Vec<Child> = (0..4)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "scenarios::a_worker", "--ignored", "--nocapture"])
                    .env(URL, url(&stage))
                    .env(START, start.as_millis().to_string())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut total = [0; 6];
        for worker in workers {
            let output = worker.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            let seen = told.lines().find_map(|line| line.strip_prefix("seen ")).unwrap_or_else(|| panic!("{told}"));
            seen.split(' ').enumerate().for_each(|(i, count)| total[i] += count.parse::<u32>().unwrap());
        }
        assert_eq!(total, [495, 4, 1, 7, 11, 13], "over {engine:?}");
    }
}

#[test]
fn s02_hammering_neither_extends_a_lockout_nor_its_key() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        let window = Duration::from_millis(1200);
        let strikes = Strikes { threshold: 3, lockout_window: window, max_tracked_keys: 10 };
        let limiter = Arc::new(AttemptLimiter::new(&stage.store, "hammered", strikes, None).unwrap());
        let attempt = |limiter: &Arc<AttemptLimiter>| {
            let limiter = Arc::clone(limiter);
            stage.run(async move { limiter.decide("ann", None).await.unwrap() })
        };
        let outcomes = [(); 3].map(|()| attempt(&limiter).outcome);
        assert_eq!(outcomes, [Outcome::Allowed, Outcome::Allowed, Outcome::AllowedLast]);
        let keys: Vec<String> = stage.ask("KEYS ratelimit:{hammered:*").unwrap();
        let (start, mut last) = (Instant::now(), (window, i64::MAX));
        loop {
            let decision = attempt(&limiter);
            if decision.allowed() {
                break;
            }
            let now = (decision.retry_after.unwrap(), stage.ask::<i64>(&format!("PTTL {}", keys[0])).unwrap());
            assert!(now.0 < last.0 && now.1 <= last.1, "{now:?} after {last:?}");
            last = now;
            // Exactly at its end, to be sure that it is no later.
            std::thread::sleep(now.0.min(Duration::from_millis(50)));
        }
        assert!(start.elapsed() < window + Duration::from_millis(250), "{:?}", start.elapsed());
    }
}

#[test]
fn s17_odd_values_have_budgets_of_their_own_under_names_of_one_length() {
    let stage = Stage::new(Engine::Valkey, &[], Road::Port);
    let long = vec![b'x'; 10_000_000];
    let values: Vec<Vec<u8>> = [
        &b"__proto__"[..],
        b"constructor",
        b"\0",
        b"a\0b",
        b"\xed\xa0\x80",
        b"*",
        b"} {",
        b"\r\n",
        "straße".as_bytes(),
        &long,
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    let (store, count) = (patient(&url(&stage)), values.len());
    stage.run(async move {
        let strikes = Strikes { threshold: 2, lockout_window: WINDOW, max_tracked_keys: 100 };
        let limiter = AttemptLimiter::new(&store, "odd", strikes, None).unwrap();
        for value in &values {
            let decision = limiter.decide(value, None).await.unwrap();
            assert_eq!(decision.remaining, 1, "shared with another value");
        }
    });
    let keys: Vec<String> = stage.ask("KEYS *").unwrap();
    assert_eq!(keys.len(), count);
    let length = "ratelimit:{odd:}:s2/1m".len() + 32;
    assert!(keys.iter().all(|key| key.len() == length && key.is_ascii()), "{keys:?}");
    stage.finish();
}

#[test]
fn s41_two_replicas_draw_on_one_budget_by_the_clock_of_the_server() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        let stores = [patient(&url(&stage)), patient(&url(&stage))];
        let admitted = stage.run(async move {
            let limiters = stores.map(|store| Limiter::new(&store, None, 100).unwrap());
            let keys = [Rule::new("replicas", "10/1h".parse().unwrap()).unwrap().key(&[b"ann"]).unwrap()];
            let mut admitted = 0;
            for i in 0..1000 {
                admitted += u32::from(limiters[i % 2].decide(&keys, 1, None).await.unwrap().allowed());
            }
            admitted
        });
        assert_eq!(admitted, 10);
        // Nobody sends a time: the keys' ends are the server's.
        let keys: Vec<String> = stage.ask("KEYS ratelimit:{replicas:*").unwrap();
        let ttl: i64 = stage.ask(&format!("PTTL {}", keys[0])).unwrap();
        assert!(3_590_000 < ttl && ttl <= 3_600_002, "{ttl}");
    }
}

#[test]
fn s42_a_reset_touches_the_very_key_and_never_scans() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        stage.tell("CONFIG RESETSTAT");
        let guards = stage.closed().clone();
        stage.run(async move {
            for name in ["alice", "alina", "a", "b", "*"] {
                assert_eq!(guards.admitted(name).await, 5);
            }
            for pattern in ["ali*", "[ab]*", "?", "*"] {
                assert!(guards.strikes.reset(pattern).await.unwrap());
            }
            for name in ["alice", "alina", "a", "b"] {
                assert!(!guards.attempt(name).await.allowed(), "{name} was reset by a pattern");
            }
            assert!(guards.attempt("*").await.allowed(), "the literal key is forgotten");
        });
        let stats: String = stage.ask("INFO commandstats").unwrap();
        assert!(!stats.contains("cmdstat_keys") && !stats.contains("cmdstat_scan"), "{stats}");
        stage.finish();
    }
}

#[test]
fn a_call_of_sixteen_keys_of_sixteen_rates_is_one_trip_and_all_or_nothing() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let stage = Stage::new(engine, &[], Road::Port);
        let store = patient(&url(&stage));
        stage.run(async move {
            let limiter = Limiter::new(&store, None, 1000).unwrap();
            let rates: Vec<String> = (1..=16).map(|hours| format!("{}/{hours}h", 3 + hours)).collect();
            let rules = (0..16).map(|i| Rule::new(&format!("wide-{i}"), rates.join(",").parse().unwrap()).unwrap());
            let keys: Vec<_> = rules.map(|rule| rule.key(&[b"ann"]).unwrap()).collect();
            assert!(limiter.decide(&keys[15..], 2, None).await.unwrap().allowed());
            let decisions =
                [limiter.decide(&keys, 2, None).await.unwrap(), limiter.decide(&keys, 1, None).await.unwrap()];
            assert!(decisions[0].allowed() && !decisions[1].allowed(), "{decisions:?}");
            assert_eq!(decisions[1].rule.as_deref(), Some("wide-15"));
            assert!(limiter.decide(&keys[..15], 2, None).await.unwrap().allowed(), "the denied call took nothing");
            assert!(!limiter.decide(&keys[..15], 1, None).await.unwrap().allowed());
        });
    }
}
