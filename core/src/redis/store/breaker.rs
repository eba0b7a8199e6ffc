//! A store: the connection, one total deadline, the breaker and what it has to tell.
//!
//! Knows no policy. Invariant: a call returns within the timeout whatever the server does, and at
//! once while the breaker is open; one probe at a time looks for the server's return.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redis::{ConnectionInfo, Value};

use crate::error::Error;
use crate::id::{AttemptId, ProcessIds};
use crate::redis::store::connection::{Connected, Failure, Slot};
use crate::redis::store::memory_check;
use crate::redis::store::options::{self, Options};
use crate::redis::store::script::{Request, Scripts, Source};
use crate::redis::store::trouble::{self, Trouble};
use crate::time::Timestamp;

const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How long a probe may take to connect, if that is more than the timeout.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// Far more than a round trip, whatever the timeout.
const LONGEST_PATIENCE: Duration = Duration::from_millis(250);
const REFUSAL_EVERY_MICROS: u64 = 60_000_000;
const CHECK_MEMORY_EVERY: Duration = Duration::from_secs(600);
/// An outage is two events; whoever does not read them loses the oldest, not memory.
const KEPT_EVENTS: usize = 64;
/// With another clock than the server's: virtual time may stand still while the server's does not.
const LEAST_TTL_MS: u64 = 600_000;

/// Something that an operator wants one log line for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The store stopped answering.
    StoreDown {
        /// Where it is, without credentials.
        place: String,
        /// What was seen, in a word or two.
        why: String,
    },
    /// The store answers again.
    StoreUp {
        /// Where it is, without credentials.
        place: String,
    },
    /// The server refused a call that others may not meet: out of memory, no permission, busy.
    StoreRefused {
        /// Where it is, without credentials.
        place: String,
        /// The server's error code.
        why: String,
    },
    /// The server drops keys when its memory is full: an evicted count is a reset limit.
    StoreEvicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// A value at one of our keys was not ours; it counts as fully spent.
    CorruptState {
        /// The rule whose key it was.
        rule: String,
    },
}

/// What a process has open to one server. A forked child leaves its parent's alone and makes its own.
struct Live {
    process: u32,
    ids: ProcessIds,
    slot: Slot,
    is_down: AtomicBool,
    is_probing: AtomicBool,
    is_watching: AtomicBool,
    timeouts_in_a_row: AtomicU32,
    /// When a refusal was told last, in µs since the epoch.
    told_refusal_at: AtomicU64,
    events: Mutex<VecDeque<Event>>,
    has_events: AtomicBool,
}

impl Live {
    fn new() -> Self {
        Self {
            process: std::process::id(),
            ids: ProcessIds::new(),
            slot: Slot::default(),
            is_down: AtomicBool::new(false),
            is_probing: AtomicBool::new(false),
            is_watching: AtomicBool::new(false),
            timeouts_in_a_row: AtomicU32::new(0),
            told_refusal_at: AtomicU64::new(0),
            events: Mutex::default(),
            has_events: AtomicBool::new(false),
        }
    }
}

pub(crate) struct Store {
    info: ConnectionInfo,
    place: String,
    pub(crate) options: Options,
    pub(crate) scripts: Scripts,
    live: ArcSwap<Live>,
    is_closed: AtomicBool,
    /// Counts the returns of the server: local state from before the latest one is void.
    returns: AtomicU64,
    warned_of_eviction: AtomicBool,
}

impl Store {
    pub(crate) fn new(url: &str, options: Options) -> Result<Arc<Self>, Error> {
        options.check()?;
        let info = options::address(url)?;
        // Whoever embeds us may have installed a provider already; theirs stands then.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let place = options::place(&info);
        Ok(Arc::new(Self {
            info,
            place,
            options,
            scripts: Scripts::new(),
            live: ArcSwap::from_pointee(Live::new()),
            is_closed: AtomicBool::new(false),
            returns: AtomicU64::new(0),
            warned_of_eviction: AtomicBool::new(false),
        }))
    }

    /// The instant to send: the caller's, this process's by the client clock, or none for the server's.
    pub(crate) fn instant(&self, now: Option<Timestamp>) -> Option<Timestamp> {
        match self.options.clock {
            options::Clock::Server => now,
            options::Clock::Client => now.or_else(|| Some(Timestamp::now())),
        }
    }

    /// An id for one call, which no other call of any process has.
    pub(crate) fn next_id(&self) -> AttemptId {
        self.live().ids.next()
    }

    pub(crate) fn least_ttl(instant: Option<Timestamp>) -> u64 {
        if instant.is_some() { LEAST_TTL_MS } else { 0 }
    }

    /// How often the server has come back.
    pub(crate) fn returns(&self) -> u64 {
        self.returns.load(Ordering::Acquire)
    }

    /// Runs a script within the timeout and reads its answer. What may have run is never sent again.
    pub(crate) async fn run<T>(
        self: &Arc<Self>,
        source: &Source,
        request: &Request,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<T, Trouble> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Trouble::Closed);
        }
        let live = self.live();
        if live.is_down.load(Ordering::Acquire) {
            self.probe(&live);
            return Err(Trouble::StillDown);
        }
        let answer = self.send(&live, source, request).await;
        let outcome = answer.and_then(|value| {
            read(value).ok_or_else(|| {
                live.slot.drop_old_up_to(u64::MAX);
                Trouble::nonsense()
            })
        });
        match &outcome {
            Err(Trouble::Down { why, .. }) => self.goes_down(&live, why),
            Err(Trouble::Refused { why, .. }) => self.tell_refusal(&live, why),
            Ok(_) | Err(Trouble::StillDown | Trouble::Closed) => {}
        }
        outcome
    }

    /// Once a minute at most: at the edge of its memory a server refuses and answers by turns.
    fn tell_refusal(&self, live: &Live, why: &str) {
        let now = Timestamp::now().as_micros();
        let told = live.told_refusal_at.load(Ordering::Relaxed);
        let is_due = told == 0 || now.saturating_sub(told) > REFUSAL_EVERY_MICROS;
        let swap = || live.told_refusal_at.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && swap().is_ok() {
            self.tell(Event::StoreRefused { place: self.place.clone(), why: why.to_owned() });
        }
    }

    /// Drops the connection. Calls are answered by `on_error` from now on.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.live().slot.drop_up_to(u64::MAX);
    }

    pub(crate) fn has_events(&self) -> bool {
        self.live().has_events.load(Ordering::Acquire)
    }

    pub(crate) fn take_events(&self) -> Vec<Event> {
        let live = self.live();
        let mut events = live.events.lock();
        live.has_events.store(false, Ordering::Release);
        events.drain(..).collect()
    }

    pub(crate) fn tell(&self, event: Event) {
        let live = self.live();
        let mut events = live.events.lock();
        if events.len() == KEPT_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
        live.has_events.store(true, Ordering::Release);
    }

    fn live(&self) -> Arc<Live> {
        let live = self.live.load_full();
        if live.process == std::process::id() {
            return live;
        }
        // A forked child: the parent's connection and its tasks belong to a runtime that does not exist here.
        let ours = Arc::new(Live::new());
        std::mem::forget(self.live.swap(Arc::clone(&ours)));
        std::mem::forget(live);
        ours
    }

    /// One deadline over connecting, sending and, where the server does not know the script, sending its source.
    async fn send(self: &Arc<Self>, live: &Arc<Live>, source: &Source, request: &Request) -> Result<Value, Trouble> {
        let run = async {
            let mut is_renewed = false;
            loop {
                // Whatever is wrong before there is a connection, nobody answers.
                let connecting = live.slot.get(&self.info, self.patience());
                let mut connected = connecting.await.map_err(|error| Trouble::unreachable(&error))?;
                self.watch_memory(live);
                let number = connected.number;
                let failure = match ask(&mut connected, source, request).await {
                    Ok(value) => return Ok(value),
                    Err(failure) => failure,
                };
                // The connection ended before a byte of the call was written, so it cannot have run. Once only: a
                // server that hangs up on everybody is an outage.
                if failure.is_unwritten && !is_renewed {
                    live.slot.drop_up_to(number);
                    is_renewed = true;
                    continue;
                }
                let trouble = Trouble::of(&failure.error);
                match trouble {
                    Trouble::Down { drop_connection: true, .. } => live.slot.drop_up_to(number),
                    Trouble::Refused { drop_connection: true, .. } => live.slot.drop_old_up_to(number),
                    _ => {}
                }
                return Err(trouble);
            }
        };
        match tokio::time::timeout(self.options.timeout, run).await {
            Ok(Ok(value)) => {
                live.timeouts_in_a_row.store(0, Ordering::Relaxed);
                Ok(value)
            }
            Ok(Err(trouble)) => Err(trouble),
            Err(_) => {
                // One timeout may be a slow server; after two in a row the connection is not believed any more.
                if live.timeouts_in_a_row.fetch_add(1, Ordering::Relaxed) > 0 {
                    live.slot.drop_up_to(u64::MAX);
                }
                Err(Trouble::timed_out())
            }
        }
    }

    /// How long a silent connection may take to answer before another is made: a part of the deadline, so that the
    /// other one has time left.
    fn patience(&self) -> Duration {
        (self.options.timeout / 4).min(LONGEST_PATIENCE)
    }

    fn goes_down(self: &Arc<Self>, live: &Arc<Live>, why: &str) {
        if !live.is_down.swap(true, Ordering::AcqRel) {
            self.tell(Event::StoreDown { place: self.place.clone(), why: why.to_owned() });
        }
        self.probe(live);
    }

    /// Looks for the server's return, unless somebody does already.
    fn probe(self: &Arc<Self>, live: &Arc<Live>) {
        if live.is_probing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (store, live) = (Arc::downgrade(self), Arc::clone(live));
        tokio::spawn(async move {
            // Also when the runtime drops this task: the next call starts another.
            let _probing = Probing(Arc::clone(&live));
            loop {
                tokio::time::sleep(PROBE_EVERY).await;
                let Some(store) = Weak::upgrade(&store) else { return };
                if store.is_closed.load(Ordering::Acquire) || store.finds_server(&live).await {
                    return;
                }
            }
        });
    }

    /// Asks the deciding script about a key that does not exist: what answers it answers real calls.
    async fn finds_server(self: &Arc<Self>, live: &Arc<Live>) -> bool {
        // Connecting takes several trips. Where that is more than a call's timeout, no call would ever find a server.
        let connecting = live.slot.get(&self.info, self.patience());
        if !matches!(tokio::time::timeout(self.options.timeout.max(CONNECT_WITHIN), connecting).await, Ok(Ok(_))) {
            return false;
        }
        let mut request = Request::decide(None, false, 0, live.ids.next());
        let window = [0x3f, 0xf0, 0, 0, 0, 0, 0, 0];
        request.push(format!("{}:{{probe}}", self.options.prefix), [b"w", &window[..], &window[..]].concat());
        let answer = self.send(live, &self.scripts.decide, &request).await;
        let is_back = !matches!(answer, Err(Trouble::Down { .. }));
        if is_back {
            self.returns.fetch_add(1, Ordering::AcqRel);
            live.is_down.store(false, Ordering::Release);
            self.tell(Event::StoreUp { place: self.place.clone() });
        }
        is_back
    }

    /// Looks now and every ten minutes whether the server evicts, unless somebody does already.
    fn watch_memory(self: &Arc<Self>, live: &Arc<Live>) {
        if live.is_watching.load(Ordering::Relaxed) || live.is_watching.swap(true, Ordering::AcqRel) {
            return;
        }
        let (store, watching) = (Arc::downgrade(self), Watching(Arc::downgrade(live)));
        tokio::spawn(async move {
            loop {
                let (Some(store), Some(live)) = (store.upgrade(), watching.0.upgrade()) else { return };
                if store.is_closed.load(Ordering::Acquire) {
                    return;
                }
                if let Some(connected) = live.slot.current() {
                    let asked = memory_check::evicting_policy(connected);
                    let policy = tokio::time::timeout(store.options.timeout, asked).await.ok().flatten();
                    if let Some(policy) = policy.filter(|_| !store.warned_of_eviction.swap(true, Ordering::Relaxed)) {
                        store.tell(Event::StoreEvicts { policy });
                    }
                }
                drop((store, live));
                tokio::time::sleep(CHECK_MEMORY_EVERY).await;
            }
        });
    }
}

/// Runs a script by its hash, and by its source where the server does not know it.
async fn ask(connected: &mut Connected, source: &Source, request: &Request) -> Result<Value, Failure> {
    match connected.exchange(&source.by_hash(request)).await {
        // Proof that nothing ran.
        Err(failure) if trouble::is_unknown_script(&failure.error) => {
            connected.exchange(&source.by_source(request)).await
        }
        answer => answer,
    }
}

struct Probing(Arc<Live>);

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.is_probing.store(false, Ordering::Release);
    }
}

struct Watching(Weak<Live>);

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(live) = self.0.upgrade() {
            live.is_watching.store(false, Ordering::Release);
        }
    }
}
