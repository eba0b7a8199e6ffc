//! The rows of the fault matrix that run the common course.

use std::thread;
use std::time::Duration;

use crate::proxy::Fault;
use crate::rows::{Expect, Row, rows};
use crate::stage::{PASSWORD, Road, Stage, ask};

const UNNOTICED: Row =
    Row { server: &[], road: Road::Proxy, fault: |_| {}, relief: |_| {}, expect: Expect::Unnoticed, loses: false };
const DOWN: Row = Row { expect: Expect::Down, relief: |stage| stage.proxy.set(Fault::Pass), ..UNNOTICED };

const fn refused(code: &'static str, denials_stand: bool, fault: fn(&mut Stage), relief: fn(&mut Stage)) -> Row {
    Row { expect: Expect::Refused { code, denials_stand }, fault, relief, ..UNNOTICED }
}

rows! {
    f00_no_fault_is_not_noticed on [Redis, Valkey] = UNNOTICED;

    f01_a_refused_port_opens_the_breaker on [Redis, Valkey] = Row {
        road: Road::Port,
        fault: |stage| stage.server.kill(),
        relief: |stage| stage.server.restart(),
        loses: true,
        ..DOWN
    };

    f02_a_frozen_server_costs_one_timeout on [Redis, Valkey] = Row {
        road: Road::Port,
        fault: |stage| stage.server.freeze(),
        relief: |stage| stage.server.thaw(),
        ..DOWN
    };

    f02_a_silent_network_costs_one_timeout on [Redis] = Row { fault: |stage| stage.proxy.set(Fault::Stall), ..DOWN };

    f04_a_pause_below_the_timeout_is_not_noticed on [Redis, Valkey] = Row {
        fault: |stage| stage.tell("CLIENT PAUSE 100"),
        ..UNNOTICED
    };

    f04_jitter_below_the_timeout_is_not_noticed on [Redis] = Row {
        fault: |stage| stage.proxy.set(Fault::Delay(Duration::ZERO, Duration::from_millis(60))),
        relief: |stage| stage.proxy.set(Fault::Pass),
        ..UNNOTICED
    };

    f04_a_pause_beyond_the_timeout_heals on [Redis, Valkey] = Row {
        fault: |stage| stage.tell("CLIENT PAUSE 3000"),
        relief: |stage| stage.tell("CLIENT UNPAUSE"),
        ..DOWN
    };

    f06_a_reset_connection_is_a_failure on [Redis] = Row { fault: |stage| stage.proxy.set(Fault::Rst), ..DOWN };

    f06_an_answer_in_another_protocol_is_a_failure on [Redis] = Row {
        fault: |stage| stage.proxy.set(Fault::Say(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")),
        ..DOWN
    };

    f06_an_answer_that_no_script_gives_is_a_failure on [Redis] = Row {
        fault: |stage| stage.proxy.set(Fault::Say(b"+OK\r\n")),
        ..refused("not the script's", false, |_| {}, |stage| stage.proxy.set(Fault::Pass))
    };

    f07_a_crash_and_restart_admits_one_budget_more on [Redis, Valkey] = Row {
        fault: |stage| {
            stage.server.kill();
            stage.server.restart();
            stage.proxy.set(Fault::Rst);
        },
        loses: true,
        ..DOWN
    };

    f08_forgotten_scripts_are_not_noticed on [Redis, Valkey] = Row {
        fault: |stage| stage.tell("SCRIPT FLUSH"),
        ..UNNOTICED
    };

    f09_forgotten_keys_admit_one_budget_more on [Redis, Valkey] = Row {
        fault: |stage| stage.tell("FLUSHALL"),
        loses: true,
        ..UNNOTICED
    };

    f10_a_full_server_still_denies on [Redis, Valkey] = refused(
        "OOM",
        true,
        |stage| stage.tell("CONFIG SET maxmemory 1"),
        |stage| stage.tell("CONFIG SET maxmemory 0"),
    );

    f11_a_demoted_server_still_denies_and_heals_when_promoted on [Redis, Valkey] = refused(
        "READONLY",
        true,
        |stage| stage.tell("REPLICAOF 127.0.0.1 1"),
        |stage| stage.tell("REPLICAOF NO ONE"),
    );

    f12_a_server_that_loads_opens_the_breaker on [Redis] = Row {
        fault: |stage| stage.proxy.set(Fault::Say(b"-LOADING Redis is loading the dataset in memory\r\n")),
        ..DOWN
    };

    f12_a_replica_without_its_primary_opens_the_breaker on [Redis] = Row {
        fault: |stage| stage.proxy.set(Fault::Say(b"-MASTERDOWN Link with MASTER is down\r\n")),
        ..DOWN
    };

    f13_a_busy_script_is_a_refusal on [Redis, Valkey] = Row {
        server: &["--busy-reply-threshold", "20"],
        ..refused(
            "BUSY",
            false,
            |stage| {
                let url = format!("redis://:{PASSWORD}@127.0.0.1:{}/0", stage.server.port());
                thread::spawn(move || {
                    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
                    let _: redis::RedisResult<()> =
                        redis::cmd("EVAL").arg("while true do end").arg(0).query(&mut connection);
                });
                thread::sleep(Duration::from_millis(150));
            },
            |stage| stage.tell("SCRIPT KILL"),
        )
    };

    f14_a_server_that_cannot_save_is_a_refusal on [Redis, Valkey] = refused(
        "MISCONF",
        true,
        |stage| {
            // A folder that is gone: even a superuser cannot write there.
            let folder = std::env::temp_dir().join(format!("doorkeep-cannot-save-{}", stage.server.port()));
            std::fs::create_dir(&folder).unwrap();
            let connection = &mut stage.connection();
            redis::cmd("CONFIG").arg("SET").arg("dir").arg(&*folder.to_string_lossy()).exec(connection).unwrap();
            std::fs::remove_dir(&folder).unwrap();
            stage.tell("CONFIG SET save 3600_1");
            stage.tell("BGSAVE");
            while !stage.ask::<String>("INFO persistence").unwrap().contains("rdb_last_bgsave_status:err") {
                thread::sleep(Duration::from_millis(10));
            }
        },
        |stage| stage.tell("CONFIG SET stop-writes-on-bgsave-error no"),
    );

    f14_a_server_without_its_replicas_is_a_refusal on [Redis, Valkey] = refused(
        "NOREPLICAS",
        true,
        |stage| stage.tell("CONFIG SET min-replicas-to-write 1"),
        |stage| stage.tell("CONFIG SET min-replicas-to-write 0"),
    );

    f18_a_user_who_may_not_write_is_a_refusal on [Redis, Valkey] = refused(
        "NOPERM",
        true,
        |stage| stage.tell("ACL SETUSER default -set"),
        |stage| stage.tell("ACL SETUSER default +set"),
    );

    f18_a_user_who_may_not_run_scripts_is_a_refusal on [Redis] = refused(
        "NOPERM",
        false,
        |stage| stage.tell("ACL SETUSER default -evalsha"),
        |stage| stage.tell("ACL SETUSER default +evalsha"),
    );

    f26_a_server_that_takes_no_more_clients_opens_the_breaker on [Redis, Valkey] = Row {
        fault: |stage| {
            let mut last = stage.connection();
            let () = ask(&mut last, "CONFIG SET maxclients 1").unwrap();
            stage.held = Some(last);
            stage.proxy.set(Fault::Rst);
            thread::sleep(Duration::from_millis(50));
            stage.proxy.set(Fault::Pass);
        },
        relief: |stage| {
            let () = ask(&mut stage.held.take().unwrap(), "CONFIG SET maxclients 1000").unwrap();
        },
        ..DOWN
    };
}
