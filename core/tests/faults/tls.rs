//! TLS (F19), under an authority of our own.
//!
//! Which authorities a process trusts is read from its environment, so each case is a process of its own:
//! this binary again, with one ignored test. Invariant: what is wrong is said in words, without the password.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

use crate::proxy::Proxy;
use crate::rows::is_without_store;
use crate::server::{Engine, Server, free_port};
use crate::stage::{PASSWORD, SLACK, Stage, TIMEOUT, kinds};

const URL: &str = "DOORKEEP_TEST_URL";
const WHY: &str = "DOORKEEP_TEST_WHY";
const PORT: &str = "DOORKEEP_TEST_PORT";

/// Certificates of a server for one host, in a folder that goes with this.
struct Papers(PathBuf);

impl Papers {
    fn of(host: &str, has_expired: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("doorkeep-tls-{}-{}", std::process::id(), free_port()));
        std::fs::create_dir(&folder).unwrap();
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap();
        std::fs::write(folder.join("authority.pem"), certificate.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut server = CertificateParams::new(vec![host.to_owned()]).unwrap();
        if has_expired {
            (server.not_before, server.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let issuer = Issuer::new(authority, authority_key);
        std::fs::write(folder.join("server.pem"), server.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the ignored test below in a process that trusts the authority; `why` is what it must be told.
fn in_a_trusting_process(papers: &Papers, scheme: &str, to_tls: bool, why: &str) {
    let tls_port = free_port();
    let server = Server::start_with(
        Engine::Redis,
        &[
            ["--requirepass", PASSWORD],
            ["--tls-port", &tls_port.to_string()],
            ["--tls-cert-file", &papers.path("server.pem")],
            ["--tls-key-file", &papers.path("server.key")],
            ["--tls-ca-cert-file", &papers.path("authority.pem")],
            ["--tls-auth-clients", "no"],
        ]
        .concat(),
    );
    let port = if to_tls { tls_port } else { server.port() };
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::a_call_over_tls", "--ignored", "--nocapture"])
        .env("SSL_CERT_FILE", Path::new(&papers.path("authority.pem")))
        .env(URL, format!("{scheme}://:{PASSWORD}@localhost:{port}/0"))
        .env(PORT, server.port().to_string())
        .env(WHY, why)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
#[ignore = "run by the others, in a process of its own"]
fn a_call_over_tls() {
    let (url, why) = (std::env::var(URL).unwrap(), std::env::var(WHY).unwrap());
    // The stage wants a server of its own; what is asked is the one that the address names.
    let server = Server::start_with(Engine::Redis, &["--requirepass", PASSWORD]);
    let proxy = Proxy::before(server.port());
    let mut stage = Stage::on(server, proxy, &url);
    for guards in stage.guards.clone() {
        let is_healthy = why.is_empty();
        stage.run(async move {
            if is_healthy {
                guards.every_call_is_answered().await;
            } else {
                assert!(is_without_store(&guards.attempt("ann").await));
                guards.every_call_is_answered_without_the_store(TIMEOUT + SLACK).await;
            }
        });
    }
    if why.is_empty() {
        // F31 under TLS: what the server says at the end of a connection is no answer to a call.
        let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
        let mut asked = redis::Client::open(format!("redis://:{PASSWORD}@127.0.0.1:{port}/0")).unwrap();
        let killed: u64 = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").query(&mut asked).unwrap();
        assert!(killed >= 1);
        std::thread::sleep(Duration::from_millis(5));
        let guards = stage.closed().clone();
        stage.run(async move { guards.every_call_is_answered().await });
    }
    stage.take_events();
    let expected = if why.is_empty() { [].into() } else { [("down", 1)].into() };
    assert_eq!(kinds(&stage.events), expected, "{:?}", stage.events);
    let told = format!("{:?}", stage.events).to_lowercase();
    assert!(told.contains(&why), "{told} does not say {why}");
    stage.finish();
}

#[test]
fn f19_a_certificate_of_a_known_authority_is_trusted() {
    in_a_trusting_process(&Papers::of("localhost", false), "rediss", true, "");
}

#[test]
fn f19_an_expired_certificate_is_a_failure_that_says_so() {
    in_a_trusting_process(&Papers::of("localhost", true), "rediss", true, "expired");
}

#[test]
fn f19_a_certificate_of_another_host_is_a_failure_that_says_so() {
    in_a_trusting_process(&Papers::of("elsewhere.example", false), "rediss", true, "name");
}

#[test]
fn f19_an_unknown_authority_is_a_failure_that_says_so() {
    let (papers, others) = (Papers::of("localhost", false), Papers::of("localhost", false));
    std::fs::copy(others.path("server.pem"), papers.path("server.pem")).unwrap();
    std::fs::copy(others.path("server.key"), papers.path("server.key")).unwrap();
    in_a_trusting_process(&papers, "rediss", true, "certificate");
}

#[test]
fn f19_plain_words_to_a_port_of_tls_are_a_failure() {
    in_a_trusting_process(&Papers::of("localhost", false), "redis", true, "down");
}

#[test]
fn f19_tls_to_a_port_of_plain_words_is_a_failure() {
    // The server waits for the end of what it takes for a command.
    in_a_trusting_process(&Papers::of("localhost", false), "rediss", false, "timeout");
}
