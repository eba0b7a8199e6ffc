//! Who may do what (F18): passwords, users, the least that a user needs.

use std::thread;
use std::time::Duration;

use doorkeep::redis::{FixedWindow, RedisStore, StoreOptions};

use crate::proxy::Proxy;
use crate::server::{Engine, Server};
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
            "ACL SETUSER doorkeep on >{PASSWORD} ~ratelimit:* +evalsha +eval +script|load +time +get +getrange +set +del \
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

#[test]
fn a_bad_address_is_an_error_that_shows_no_password() {
    for url in ["redis://:{}@host:port/0", "redis://:{}@", "http://:{}@host/0", "redis://user:{}@host:6379/x", "{}", ""]
    {
        let error = RedisStore::new(&url.replace("{}", PASSWORD), StoreOptions::default()).err();
        let error = error.unwrap_or_else(|| panic!("{url} is taken for an address")).to_string();
        assert!(error.starts_with("redis url ") && !error.contains(PASSWORD), "{error}");
    }
}

#[test]
fn a_socket_and_a_database_are_addresses_too() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let path = std::env::temp_dir().join(format!("doorkeep-{}-{engine:?}.sock", std::process::id()));
        let path = path.to_str().unwrap();
        let server = Server::start_with(engine, &["--requirepass", PASSWORD, "--unixsocket", path]);
        let proxy = Proxy::before(server.port());
        let stage = Stage::on(server, proxy, &format!("redis+unix://{path}?db=3&pass={PASSWORD}"));
        for guards in stage.guards.clone() {
            stage.run(async move {
                guards.every_call_is_answered().await;
                guards.admitted("ann").await;
            });
        }
        let spaces: String = stage.ask("INFO keyspace").unwrap();
        assert!(spaces.contains("db3:") && !spaces.contains("db0:"), "{spaces}");
        let fifth = format!("redis://:{PASSWORD}@127.0.0.1:{}/5", stage.server.port());
        let store = RedisStore::new(&fifth, StoreOptions::default()).unwrap();
        let policy = (1, Duration::from_secs(60), 10);
        let here = FixedWindow::new(&store, "window-local", policy, None).unwrap();
        stage.run(async move { assert!(here.consume("bob", None).await.unwrap().allowed()) });
        assert!(stage.ask::<String>("INFO keyspace").unwrap().contains("db5:keys=1"));
        stage.check_keys();
        let _ = std::fs::remove_file(path);
    }
}
