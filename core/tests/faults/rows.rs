//! What a row of the matrix is, and the one course that every row runs.
//!
//! Healthy traffic, the fault, traffic of every kind under every `on_error`, relief, healthy traffic
//! again. Invariant: the course asserts I1 (no more is admitted than the losses and the stay explain)
//! and I6 (the store is used again soon, and was not stormed); the stage asserts the others.

use std::thread;
use std::time::{Duration, Instant};

use doorkeep::{Decision, OnError, Reason};

use crate::server::Engine;
use crate::stage::{AT_ONCE, Road, STRIKES, Stage, kinds};

/// How long a fault that opens the breaker lasts, so that a probe meets it, too.
const STAY: Duration = Duration::from_millis(1300);
/// About a second until the next probe, and what a busy machine adds.
const SOON: Duration = Duration::from_millis(2200);

pub(crate) struct Row {
    /// Further arguments of the server.
    pub(crate) server: &'static [&'static str],
    pub(crate) road: Road,
    pub(crate) fault: fn(&mut Stage),
    pub(crate) relief: fn(&mut Stage),
    pub(crate) expect: Expect,
    /// Whether Redis forgets everything.
    pub(crate) loses: bool,
}

pub(crate) enum Expect {
    /// The breaker opens: one event in, one out, every call answered by `on_error` at once.
    Down,
    /// Calls that write are refused one by one with this code; those that only deny still deny if so said.
    Refused { code: &'static str, denials_stand: bool },
    /// Nobody notices.
    Unnoticed,
}

pub(crate) fn play(engine: Engine, row: &Row) {
    let mut stage = Stage::new(engine, row.server, row.road);
    let mut admitted = [0; 3];
    before(&stage, &mut admitted);
    (row.fault)(&mut stage);
    stage.lost = u32::from(row.loses);
    match row.expect {
        Expect::Down => down(&mut stage, &mut admitted),
        Expect::Refused { code, denials_stand } => refused(&mut stage, &mut admitted, code, denials_stand),
        Expect::Unnoticed => unnoticed(&stage),
    }
    (row.relief)(&mut stage);
    let took = stage.wait_for_the_store();
    assert!(took <= SOON, "I6: the store was used again only after {took:?}");
    after(&stage, &mut admitted, row.loses);
    stage.take_events();
    let seen = kinds(&stage.events);
    let expected: &[(&str, usize)] = match row.expect {
        Expect::Down => &[("down", 1), ("up", 1)],
        Expect::Refused { .. } => &[("refused", 1)],
        Expect::Unnoticed => &[],
    };
    assert_eq!(seen, expected.iter().copied().collect(), "I5: {:?}", stage.events);
    let stays = u32::from(!matches!(row.expect, Expect::Unnoticed));
    for (guards, admitted) in stage.guards.iter().zip(admitted) {
        let bound = match guards.on_error {
            OnError::Local => STRIKES * (1 + stage.lost + stays),
            OnError::Closed => STRIKES * (1 + stage.lost),
            OnError::Open => u32::MAX,
        };
        assert!(admitted <= bound, "I1: {admitted} admitted under {:?}, at most {bound} may be", guards.on_error);
    }
    stage.finish();
}

/// Three of five attempts on ann, all of them on a key that is locked out then.
fn before(stage: &Stage, admitted: &mut [u32; 3]) {
    for (guards, admitted) in stage.guards.clone().into_iter().zip(admitted) {
        *admitted += stage.run(async move {
            guards.every_call_is_answered().await;
            assert_eq!(guards.admitted("locked-out").await, STRIKES);
            let mut admitted = 0;
            for _ in 0..3 {
                admitted += u32::from(guards.attempt("ann").await.allowed());
            }
            assert_eq!((admitted, guards.tally().await), (3, Some(true)));
            admitted
        });
    }
    assert_eq!(stage.store.take_events(), []);
}

fn down(stage: &mut Stage, admitted: &mut [u32; 3]) {
    stage.wait_for_the_fault();
    let start = Instant::now();
    let (connections, tasks) = (stage.proxy.accepted(), stage.tasks());
    for (guards, admitted) in stage.guards.clone().into_iter().zip(admitted) {
        *admitted += stage.run(async move {
            guards.every_call_is_answered_without_the_store(AT_ONCE).await;
            let admitted = guards.admitted("ann").await;
            if guards.on_error == OnError::Local {
                assert_eq!(admitted, STRIKES, "this process's own table decides");
            }
            admitted
        });
    }
    // While it lasts nothing grows, and the server is looked for about once a second.
    let guards = stage.closed().clone();
    stage.run(async move {
        let calls: Vec<_> = (0..500)
            .map(|_| {
                let guards = guards.clone();
                tokio::spawn(async move { assert_eq!(guards.tally().await, None) })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    });
    assert!(stage.tasks() <= tasks + 2, "I7: {} tasks were alive, {} are", tasks, stage.tasks());
    thread::sleep(STAY.saturating_sub(start.elapsed()));
    let (more, elapsed) = (stage.proxy.accepted() - connections, start.elapsed());
    assert!(more as u64 <= 2 + elapsed.as_secs(), "I6: {more} connections in {elapsed:?}");
    assert_eq!(
        kinds(
            &stage
                .store
                .take_events()
                .into_iter()
                .inspect(|event| stage.events.push(event.clone()))
                .collect::<Vec<_>>()
        )["down"],
        1
    );
}

fn refused(stage: &mut Stage, admitted: &mut [u32; 3], code: &'static str, denials_stand: bool) {
    stage.wait_for_the_fault();
    let (connections, tasks) = (stage.proxy.accepted(), stage.tasks());
    for (guards, admitted) in stage.guards.clone().into_iter().zip(admitted) {
        *admitted += stage.run(async move {
            for _ in 0..10 {
                let locked = guards.attempt("locked-out").await;
                if denials_stand {
                    assert_eq!((locked.reason, locked.degraded), (Some(Reason::Locked), false), "{locked:?}");
                    assert!(locked.retry_after.unwrap() > Duration::from_secs(50));
                }
                let new = guards.attempt("dora").await;
                assert!(is_without_store(&new), "under {code}: {new:?}");
            }
            guards.admitted("ann").await
        });
    }
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("refused", 1)].into(), "the breaker stays shut, one line: {:?}", stage.events);
    assert!(format!("{:?}", stage.events).contains(code), "{:?}", stage.events);
    assert!(stage.tasks() <= tasks + 2, "I7: {} tasks were alive, {} are", tasks, stage.tasks());
    let more = stage.proxy.accepted() - connections;
    assert!(more <= 4, "I6: {more} connections were made");
}

fn unnoticed(stage: &Stage) {
    for guards in stage.guards.clone() {
        stage.run(async move {
            guards.every_call_is_answered().await;
            assert_eq!(guards.tally().await, Some(true));
        });
    }
}

fn after(stage: &Stage, admitted: &mut [u32; 3], lost: bool) {
    for (guards, admitted) in stage.guards.clone().into_iter().zip(admitted) {
        *admitted += stage.run(async move {
            guards.every_call_is_answered().await;
            let decision = guards.attempt("locked-out").await;
            assert_eq!(decision.allowed(), lost, "a lockout outlives the fault unless Redis forgot it: {decision:?}");
            let admitted = guards.admitted("ann").await;
            let decision = guards.attempt("ann").await;
            assert_eq!((decision.reason, decision.degraded), (Some(Reason::Locked), false), "{decision:?}");
            assert!(decision.retry_after.is_some_and(|wait| Duration::ZERO < wait && wait <= crate::stage::WINDOW));
            admitted
        });
    }
}

pub(crate) fn is_without_store(decision: &Decision) -> bool {
    decision.degraded || decision.reason == Some(Reason::Unavailable)
}

/// A test of its own for every row on every engine that matters to it.
macro_rules! rows {
    ($($(#[doc = $text:literal])* $name:ident on [$($engine:ident),+] = $row:expr;)+) => {$(
        $(#[doc = $text])*
        mod $name {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case, reason = "named after the engine")]
                fn $engine() {
                    crate::rows::play(crate::server::Engine::$engine, &$row);
                }
            )+
        }
    )+};
}
pub(crate) use rows;
