//! A store, its server, a proxy between them, and limiters of every kind under every `on_error`.
//!
//! Invariant: every call of a row goes through here, so that every row holds I2 (deadlines, the loop
//! goes on), I3 (nothing raises), I4 (nothing is sent twice), I5 (lines and counters), I7 (nothing
//! grows) and I8 (TTLs). The rows add I1 and I6.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorkeep::redis::{AttemptLimiter, Event, FixedWindow, Limiter, RedisStore, StoreOptions, TokenBucket};
use doorkeep::{Decision, Key, OnError, Reason, Rule, Settlement, Strikes};
use tokio::runtime::{Builder, Runtime};

use crate::proxy::Proxy;
use crate::server::{Engine, Server};

pub(crate) const PASSWORD: &str = "hunter2-of-the-store";
pub(crate) const TIMEOUT: Duration = Duration::from_millis(200);
/// What a busy machine may add to a deadline, to an answer that needs no server, and to a beat of the loop.
pub(crate) const SLACK: Duration = Duration::from_millis(250);
pub(crate) const AT_ONCE: Duration = Duration::from_millis(50);
const BEAT: Duration = Duration::from_millis(100);
const BETWEEN_BEATS: Duration = Duration::from_millis(10);

/// Strikes of every limiter that guards, and its window; all windows of a stage are as long.
pub(crate) const STRIKES: u32 = 5;
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
const OPEN_COUNT: u32 = 1000;
/// A text that no event and no error may show.
const NAMELESS: &str = "ann@example.com";

/// How the store reaches its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Road {
    /// Through the proxy.
    Proxy,
    /// Straight.
    Port,
}

/// The limiters under one `on_error`.
#[derive(Clone)]
pub(crate) struct Guards {
    pub(crate) on_error: OnError,
    /// Strikes; the limiter whose admissions are added up.
    pub(crate) strikes: Arc<AttemptLimiter>,
    /// Strikes without end, by whose ids the attempts that Redis counted can be told.
    pub(crate) tally: Arc<AttemptLimiter>,
    pub(crate) limiter: Limiter,
    pub(crate) bucket: Arc<TokenBucket>,
    pub(crate) window: Arc<FixedWindow>,
    account: Rule,
    address: Rule,
    made: Arc<Made>,
}

/// What the calls of one mode came to.
#[derive(Default)]
struct Made {
    tallied: AtomicU64,
    tallied_there: AtomicU64,
    failed: AtomicU64,
}

pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    pub(crate) store: RedisStore,
    pub(crate) guards: [Guards; 3],
    pub(crate) events: Vec<Event>,
    /// A connection that a fault holds on to.
    pub(crate) held: Option<redis::Connection>,
    /// The server's; empty for none.
    pub(crate) password: String,
    runtime: Runtime,
    longest_beat: Arc<AtomicU64>,
    /// The same of a thread that does nothing else: what the machine owes to others.
    machine: Arc<AtomicU64>,
    /// Whether Redis lost state, so that fewer attempts than were counted may be there.
    pub(crate) lost: u32,
}

impl Stage {
    pub(crate) fn new(engine: Engine, arguments: &[&str], road: Road) -> Self {
        Self::with_credentials(engine, arguments, road, &format!(":{PASSWORD}@"))
    }

    /// With other credentials than the server's.
    pub(crate) fn with_credentials(engine: Engine, arguments: &[&str], road: Road, credentials: &str) -> Self {
        let server = Server::start_with(engine, &[&["--requirepass", PASSWORD], arguments].concat());
        let proxy = Proxy::before(server.port());
        let port = if road == Road::Proxy { proxy.port() } else { server.port() };
        let url = format!("redis://{credentials}127.0.0.1:{port}/0");
        Self::on(server, proxy, &url)
    }

    pub(crate) fn on(server: Server, proxy: Proxy, url: &str) -> Self {
        let options = StoreOptions { timeout: TIMEOUT, ..StoreOptions::default() };
        let store = RedisStore::new(url, options).unwrap();
        let guards = [OnError::Local, OnError::Open, OnError::Closed].map(|on_error| Guards::new(&store, on_error));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let longest_beat = Arc::new(AtomicU64::new(0));
        runtime.spawn(beat(Arc::clone(&longest_beat)));
        let machine = Arc::new(AtomicU64::new(0));
        let weak = Arc::downgrade(&machine);
        thread::spawn(move || {
            while let Some(longest) = weak.upgrade() {
                let start = Instant::now();
                thread::sleep(BETWEEN_BEATS);
                longest.fetch_max(late(start), Ordering::Relaxed);
            }
        });
        let (events, password) = (Vec::new(), PASSWORD.to_owned());
        Self { server, proxy, store, guards, events, held: None, password, runtime, longest_beat, machine, lost: 0 }
    }

    /// Runs on the one worker of the loop whose beat is watched.
    pub(crate) fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        self.runtime.block_on(self.runtime.spawn(future)).unwrap()
    }

    pub(crate) fn local(&self) -> &Guards {
        &self.guards[0]
    }

    pub(crate) fn closed(&self) -> &Guards {
        &self.guards[2]
    }

    /// A connection past the proxy.
    pub(crate) fn connection(&self) -> redis::Connection {
        let credentials = if self.password.is_empty() { String::new() } else { format!(":{}@", self.password) };
        let url = format!("redis://{credentials}127.0.0.1:{}/0", self.server.port());
        redis::Client::open(url).unwrap().get_connection().unwrap()
    }

    /// Runs a command past the proxy; a `_` in a word stands for a space.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &str) -> redis::RedisResult<T> {
        ask(&mut self.connection(), command)
    }

    /// Runs a command whose reply does not matter.
    pub(crate) fn tell(&self, command: &str) {
        let () = self.ask(command).unwrap();
    }

    pub(crate) fn take_events(&mut self) {
        self.events.extend(self.store.take_events());
    }

    pub(crate) fn tasks(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    /// Asks until the store answers, and tells how long that took.
    pub(crate) fn wait_for_the_store(&self) -> Duration {
        let (guards, start) = (self.closed().clone(), Instant::now());
        self.run(async move {
            while guards.tally().await.is_none() {
                assert!(start.elapsed() < Duration::from_secs(10), "the store was never used again");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        start.elapsed()
    }

    /// Asks until the store does not answer.
    pub(crate) fn wait_for_the_fault(&self) {
        let (guards, start) = (self.closed().clone(), Instant::now());
        self.run(async move {
            while guards.tally().await.is_some() {
                assert!(start.elapsed() < Duration::from_secs(5), "the fault was never seen");
            }
        });
    }

    /// The invariants that hold at the end of every row.
    pub(crate) fn finish(mut self) {
        self.take_events();
        // I2: the loop went on, as far as the machine let it.
        let [beat, machine] =
            [&self.longest_beat, &self.machine].map(|beat| Duration::from_micros(beat.load(Ordering::Relaxed)));
        assert!(beat < BEAT + 2 * machine, "I2: the loop stood still for {beat:?}, a plain thread for {machine:?}");
        // I5: no line tells a secret, and every failure was counted.
        let told = format!("{:?}", self.events);
        for secret in [NAMELESS, PASSWORD, "locked-out"] {
            assert!(!told.contains(secret), "I5: an event shows {secret}: {told}");
        }
        for guards in &self.guards {
            let (counted, failed) = (guards.failures(), guards.made.failed.load(Ordering::SeqCst));
            assert_eq!(
                counted, failed,
                "I5: failed calls under {:?}, the limiters' count on the left",
                guards.on_error
            );
        }
        // I7: a store at rest leaves its driver, its watch of the server's memory and at most one probe.
        assert!(self.tasks() <= 4, "I7: {} tasks are alive", self.tasks());
        self.check_keys();
    }

    /// I4 and I8, on what Redis holds.
    pub(crate) fn check_keys(&self) {
        let keys: Vec<String> = self.ask("KEYS ratelimit:*").unwrap();
        let most = i64::try_from(WINDOW.as_millis()).unwrap() + 2;
        for key in &keys {
            let ttl: i64 = self.ask(&format!("PTTL {key}")).unwrap();
            assert!((1..=most).contains(&ttl) || ttl == -2, "I8: {key} has a TTL of {ttl} ms");
        }
        for guards in &self.guards {
            let name = format!("ratelimit:{{{}:", guards.tally.name());
            let Some(key) = keys.iter().find(|key| key.starts_with(&name)) else { continue };
            let value: Vec<u8> = self.ask(&format!("GET {key}")).unwrap();
            let ids: Vec<&[u8]> = value[10..].chunks(8).collect();
            let made = guards.made.tallied.load(Ordering::SeqCst);
            assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "I4: an attempt was counted twice");
            assert!(ids.len() as u64 <= made, "I4: {} attempts counted, {made} made", ids.len());
            let there = guards.made.tallied_there.load(Ordering::SeqCst);
            assert!(
                self.lost > 0 || ids.len() as u64 >= there,
                "{there} attempts were answered, {} counted",
                ids.len()
            );
        }
    }
}

impl Guards {
    fn new(store: &RedisStore, on_error: OnError) -> Self {
        let name = |what: &str| format!("{what}-{}", ["local", "open", "closed"][on_error as usize]);
        let strikes = |name: String, threshold| {
            let strikes = Strikes { threshold, lockout_window: WINDOW, max_tracked_keys: 1000 };
            Arc::new(AttemptLimiter::new(store, &name, strikes, Some(on_error)).unwrap())
        };
        let count = OPEN_COUNT;
        Self {
            on_error,
            strikes: strikes(name("login"), STRIKES),
            tally: strikes(name("tally"), 1024),
            limiter: Limiter::new(store, Some(on_error), 1000).unwrap(),
            bucket: Arc::new(TokenBucket::new(store, &name("bucket"), (count, WINDOW, 100), Some(on_error)).unwrap()),
            window: Arc::new(FixedWindow::new(store, &name("window"), (count, WINDOW, 100), Some(on_error)).unwrap()),
            account: Rule::strikes(&name("account"), 1000, WINDOW).unwrap(),
            address: Rule::new(&name("address"), "1000/1m".parse().unwrap()).unwrap(),
            made: Arc::default(),
        }
    }

    pub(crate) fn keys(&self) -> [Key; 2] {
        [self.account.key(&[NAMELESS.as_bytes()]).unwrap(), self.address.ip_key("203.0.113.9").unwrap()]
    }

    fn stats(&self) -> Vec<doorkeep::Stats> {
        let Self { strikes, tally, limiter, bucket, window, .. } = self;
        vec![strikes.stats(), tally.stats(), limiter.stats(), bucket.stats(), window.stats()]
    }

    /// The failed calls that the limiters counted.
    fn failures(&self) -> u64 {
        let mode = ["local", "open", "closed"][self.on_error as usize];
        self.stats().iter().filter_map(|stats| stats.store_failed.get(mode)).sum()
    }

    /// What one limiter kept of the outage.
    pub(crate) fn kept_here(&self) -> usize {
        self.strikes.len() + self.tally.len() + self.limiter.len() + self.bucket.len() + self.window.len()
    }

    pub(crate) fn fails(&self, times: u64) {
        self.made.failed.fetch_add(times, Ordering::SeqCst);
    }

    /// One attempt on the tally: whether the store admitted it; none if the store did not answer.
    pub(crate) async fn tally(&self) -> Option<bool> {
        self.made.tallied.fetch_add(1, Ordering::SeqCst);
        let decision = in_time("tally", TIMEOUT + SLACK, self.tally.decide(NAMELESS, None)).await.unwrap();
        let answered = self.answered(&decision);
        if answered && decision.allowed() {
            self.made.tallied_there.fetch_add(1, Ordering::SeqCst);
        }
        answered.then(|| decision.allowed())
    }

    /// One guarded attempt.
    pub(crate) async fn attempt(&self, key: &str) -> Decision {
        let decision = in_time("attempt", TIMEOUT + SLACK, self.strikes.decide(key, None)).await.unwrap();
        self.answered(&decision);
        decision
    }

    /// How many of twelve guarded attempts are admitted.
    pub(crate) async fn admitted(&self, key: &str) -> u32 {
        let mut admitted = 0;
        for _ in 0..12 {
            admitted += u32::from(self.attempt(key).await.allowed());
        }
        admitted
    }

    /// Whether the store gave this answer; counts the failure if not.
    pub(crate) fn answered(&self, decision: &Decision) -> bool {
        let answered = !decision.degraded && decision.reason != Some(Reason::Unavailable);
        self.fails(u64::from(!answered));
        answered
    }

    /// Every kind of call, each answered by the store.
    pub(crate) async fn every_call_is_answered(&self) {
        let within = TIMEOUT + SLACK;
        let (decision, reservation) = in_time("reserve", within, self.tally.reserve("bob", None)).await.unwrap();
        assert!(self.answered(&decision) && decision.allowed());
        assert_eq!(in_time("cancel", within, self.tally.cancel(reservation, None)).await.as_str(), "given_back");
        assert!(!in_time("locked", within, self.tally.locked("bob", None)).await.unwrap());
        in_time("refund", within, self.tally.refund("bob", None)).await.unwrap();
        let keys = self.keys();
        let attempt = in_time("attempt", within, self.limiter.attempt(&keys, 1, None)).await.unwrap();
        assert!(self.answered(&attempt.decision()) && attempt.allowed());
        let settlement = Settlement { give_back: &[keys[1].rule().name()], ..Settlement::default() };
        assert!(in_time("success", within, attempt.success(&settlement, None)).await.unwrap());
        assert!(in_time("allow", within, self.bucket.allow("bob", None)).await);
        assert!(self.answered(&in_time("consume", within, self.window.consume("bob", None)).await.unwrap()));
        assert!(in_time("reset", within, self.window.reset("bob")).await.unwrap());
        assert!(in_time("reset", within, self.limiter.reset(&keys)).await.unwrap());
    }

    /// Every kind of call, none answered by the store: what each mode answers, at once, without raising (I2, I3).
    pub(crate) async fn every_call_is_answered_without_the_store(&self, within: Duration) {
        let mode = self.on_error;
        let judge = |what: &str, decision: &Decision, most: u32| {
            assert!(!self.answered(decision), "{what} was answered by the store under {mode:?}: {decision:?}");
            match mode {
                OnError::Local => assert!(decision.degraded, "{what}"),
                OnError::Open => {
                    assert!(decision.allowed() && decision.degraded, "{what}: {decision:?}");
                    assert_eq!((decision.remaining, decision.reset_after), (most, Duration::ZERO), "{what}");
                }
                OnError::Closed => {
                    assert!(!decision.allowed() && !decision.degraded && decision.rule.is_none(), "{what}");
                    assert_eq!((decision.reason, decision.retry_after), (Some(Reason::Unavailable), None), "{what}");
                }
            }
        };
        let (decision, reservation) = in_time("reserve", within, self.strikes.reserve("carol", None)).await.unwrap();
        judge("reserve", &decision, STRIKES);
        // Under `open` there may be something to take back, if only the reply was lost.
        let before = self.failures();
        let cancelled = in_time("cancel", within, self.strikes.cancel(reservation, None)).await.as_str();
        self.fails(self.failures() - before);
        assert_eq!(cancelled, if mode == OnError::Local { "given_back" } else { "nothing" });
        let locked = in_time("locked", within, self.strikes.locked("carol", None)).await.unwrap();
        assert_eq!(locked, mode == OnError::Closed);
        assert_eq!(in_time("retry_after", within, self.strikes.retry_after("carol", None)).await.unwrap(), None);
        in_time("refund", within, self.strikes.refund("carol", None)).await.unwrap();
        assert!(!in_time("reset", within, self.strikes.reset("carol")).await.unwrap());
        let keys = self.keys();
        let attempt = in_time("attempt", within, self.limiter.attempt(&keys, 1, None)).await.unwrap();
        judge("attempt", &attempt.decision(), OPEN_COUNT);
        // Given back where it was counted, forgiven nowhere: the store was not reached.
        let settlement = Settlement { forgive: &[keys[0].rule().name()], ..Settlement::default() };
        assert!(!in_time("success", within, attempt.success(&settlement, None)).await.unwrap());
        judge("peek", &in_time("peek", within, self.limiter.peek(&keys, 1, None)).await.unwrap(), OPEN_COUNT);
        assert!(!in_time("reset", within, self.limiter.reset(&keys)).await.unwrap());
        judge("consume", &in_time("consume", within, self.window.consume("carol", None)).await.unwrap(), OPEN_COUNT);
        assert_eq!(in_time("allow", within, self.bucket.allow("carol", None)).await, mode != OnError::Closed);
        assert!(!in_time("reset", within, self.bucket.reset("carol")).await);
        // locked, retry_after, refund, reset, success if it was admitted, reset, allow, reset; answered() counted the rest.
        self.fails(7 + u64::from(mode != OnError::Closed));
    }
}

/// Runs a command; a `_` in a word stands for a space.
pub(crate) fn ask<T: redis::FromRedisValue>(
    connection: &mut redis::Connection,
    command: &str,
) -> redis::RedisResult<T> {
    let mut words = command.split(' ').map(|word| word.replace('_', " "));
    let mut built = redis::cmd(&words.next().unwrap());
    for word in words {
        built.arg(word);
    }
    built.query(connection)
}

/// I2: a call is answered in time.
pub(crate) async fn in_time<T>(what: &str, within: Duration, call: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let answer = call.await;
    let took = start.elapsed();
    assert!(took <= within, "I2: {what} took {took:?}, the bound is {within:?}");
    answer
}

/// Notes the longest time between two beats of the loop, beyond the beat itself.
async fn beat(longest: Arc<AtomicU64>) {
    loop {
        let start = Instant::now();
        tokio::time::sleep(BETWEEN_BEATS).await;
        longest.fetch_max(late(start), Ordering::Relaxed);
    }
}

fn late(start: Instant) -> u64 {
    u64::try_from(start.elapsed().saturating_sub(BETWEEN_BEATS).as_micros()).unwrap()
}

/// How often each kind of event was told.
pub(crate) fn kinds(events: &[Event]) -> HashMap<&'static str, usize> {
    let mut kinds = HashMap::new();
    for event in events {
        let kind = match event {
            Event::StoreDown { .. } => "down",
            Event::StoreUp { .. } => "up",
            Event::StoreRefused { .. } => "refused",
            Event::StoreEvicts { .. } => "evicts",
            Event::CorruptState { .. } => "corrupt",
            _ => "other",
        };
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}
