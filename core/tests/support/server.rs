//! Real servers for tests: one process each, on a free loopback port, ended with the test.

#![allow(clippy::disallowed_methods, reason = "a test waits for real servers")]

use std::env;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Which server to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
    Redis,
    Valkey,
}

impl Engine {
    /// The binary, from the environment. A test that finds none fails: it proves nothing without a server.
    fn binary(self) -> PathBuf {
        let variable = match self {
            Self::Redis => "DOORKEEP_REDIS_SERVER",
            Self::Valkey => "DOORKEEP_VALKEY_SERVER",
        };
        let path = env::var_os(variable);
        path.unwrap_or_else(|| panic!("{variable} names no server binary; `make test` sets it")).into()
    }
}

/// A running server without persistence.
pub(crate) struct Server {
    child: Child,
    port: u16,
    engine: Engine,
    arguments: Vec<String>,
}

impl Server {
    pub(crate) fn start(engine: Engine) -> Self {
        Self::start_with(engine, &[])
    }

    pub(crate) fn start_with(engine: Engine, arguments: &[&str]) -> Self {
        let port = free_port();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(engine, port, &arguments);
        let server = Self { child, port, engine, arguments };
        server.wait();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the server runs");
        self.child.wait().expect("the server can be waited for");
    }

    /// Starts it again on the same port, empty.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.engine, self.port, &self.arguments);
        self.wait();
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "{:?} did not come up on port {}", self.engine, self.port);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port is free");
    listener.local_addr().expect("it is bound").port()
}

fn spawn(engine: Engine, port: u16, arguments: &[String]) -> Child {
    Command::new(engine.binary())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--enable-debug-command", "yes"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server binary runs")
}
