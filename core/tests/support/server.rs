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
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        for _ in 0..5 {
            let port = free_port();
            let child = spawn(engine, port, &arguments);
            let mut server = Self { child, port, engine, arguments: arguments.clone() };
            // Somebody else may have taken the port meanwhile.
            if server.comes_up() {
                return server;
            }
        }
        panic!("{engine:?} does not start with {arguments:?}");
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

    /// Waits until the server has ended by itself.
    pub(crate) fn wait(&mut self) {
        self.child.wait().expect("the server can be waited for");
    }

    /// Starts it again on the same port, with what it saved at its end.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.engine, self.port, &self.arguments);
        assert!(self.comes_up(), "{:?} did not come up again on port {}", self.engine, self.port);
    }

    /// Lets the process stand still, its sockets open.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "the server could not be signalled");
    }

    fn comes_up(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if self.child.try_wait().expect("the server can be waited for").is_some() {
                return false;
            }
            // Some settings make a server start slowly; connections are taken once it listens.
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return self.child.try_wait().expect("the server can be waited for").is_none();
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(env::temp_dir().join(format!("doorkeep-{}.rdb", self.port)));
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback port is free");
    listener.local_addr().expect("it is bound").port()
}

fn spawn(engine: Engine, port: u16, arguments: &[String]) -> Child {
    Command::new(engine.binary())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        // Replication writes snapshots.
        .arg("--dir")
        .arg(env::temp_dir())
        .args(["--dbfilename", &format!("doorkeep-{port}.rdb")])
        .args(["--enable-debug-command", "yes", "--enable-protected-configs", "yes"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server binary runs")
}
