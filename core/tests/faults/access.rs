//! Who may do what (F18): passwords, users, the least that a user needs.

use std::thread;
use std::time::Duration;

use crate::server::Engine;
use crate::stage::{AT_ONCE, PASSWORD, Road, SLACK, Stage, TIMEOUT, kinds};

const WRONG: &str = "not-the-password";

/// No call is answered by the store, the breaker is open, and one line says why.
fn locked_out(engine: Engine, credentials: &str, why: &str, relief: impl FnOnce(&mut Stage)) {
    let mut stage = Stage::with_credentials(engine, &[], Road::Proxy, credentials);
    stage.wait_for_the_fault();
    for guards in stage.guards.clone() {
        stage.run(async move { guards.every_call_is_answered_without_the_store(AT_ONCE).await });
    }
    thread::sleep(Duration::from_millis(1200));
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("down", 1)].into(), "{:?}", stage.events);
    let told = format!("{:?}", stage.events);
    assert!(told.contains(why) && !told.contains(WRONG), "{told}");
    relief(&mut stage);
    let took = stage.wait_for_the_store();
    assert!(took < Duration::from_millis(2200), "I6: {took:?}");
    for guards in stage.guards.clone() {
        stage.run(async move { guards.every_call_is_answered().await });
    }
    stage.finish();
}

#[test]
fn f18_no_password_opens_the_breaker() {
    for engine in [Engine::Redis, Engine::Valkey] {
        locked_out(engine, "", "NOAUTH", |stage| {
            stage.tell("ACL SETUSER default nopass");
            stage.password = String::new();
        });
    }
}

#[test]
fn f18_a_wrong_password_opens_the_breaker() {
    for engine in [Engine::Redis, Engine::Valkey] {
        locked_out(engine, &format!(":{WRONG}@"), "auth", |stage| {
            stage.tell(&format!("ACL SETUSER default >{WRONG}"));
        });
    }
}

#[test]
fn f18_an_unknown_user_opens_the_breaker() {
    locked_out(Engine::Valkey, &format!("doorkeep:{WRONG}@"), "auth", |stage| {
        stage.tell(&format!("ACL SETUSER doorkeep on >{WRONG} ~ratelimit:* +@all"));
    });
}

#[test]
fn f18_the_least_user_that_the_documents_name_can_do_everything() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let mut stage = Stage::with_credentials(engine, &[], Road::Proxy, &format!("doorkeep:{PASSWORD}@"));
        stage.tell(&format!(
            "ACL SETUSER doorkeep on >{PASSWORD} ~ratelimit:* +evalsha +eval +script|load +time +get +set +del \
             +pexpire +info +ping +hello +select"
        ));
        for guards in stage.guards.clone() {
            stage.run(async move {
                guards.every_call_is_answered().await;
                guards.admitted("ann").await;
            });
        }
        stage.take_events();
        assert_eq!(stage.events, []);
        stage.finish();
    }
}

#[test]
fn f18_a_key_outside_of_what_the_user_may_touch_is_a_refusal() {
    let mut stage = Stage::with_credentials(Engine::Redis, &[], Road::Proxy, &format!("doorkeep:{PASSWORD}@"));
    stage.tell(&format!("ACL SETUSER doorkeep on >{PASSWORD} ~other:* +@all"));
    for guards in stage.guards.clone() {
        stage.run(async move { guards.every_call_is_answered_without_the_store(TIMEOUT + SLACK).await });
    }
    stage.take_events();
    assert_eq!(kinds(&stage.events), [("refused", 1)].into(), "{:?}", stage.events);
    assert!(format!("{:?}", stage.events).contains("NOPERM"));
    stage.finish();
}
