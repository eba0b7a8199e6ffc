//! The two scripts, and the commands that run them.

use redis::{Cmd, Script};

use crate::id::AttemptId;
use crate::time::Timestamp;

/// A source and its SHA-1, by which the server knows it once it has run.
pub(crate) struct Source {
    text: &'static str,
    sha1: String,
}

pub(crate) struct Scripts {
    pub(crate) decide: Source,
    pub(crate) settle: Source,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        let source = |text| Source { text, sha1: Script::new(text).get_hash().to_owned() };
        Self { decide: source(include_str!("decide.lua")), settle: source(include_str!("settle.lua")) }
    }
}

impl Source {
    /// Runs the script by its hash. It answers NOSCRIPT where the server does not know it.
    pub(crate) fn by_hash(&self, call: &Request) -> Cmd {
        call.command("EVALSHA", &self.sha1)
    }

    /// Runs the script by its source, which also makes it known: one trip where loading it first would take two.
    pub(crate) fn by_source(&self, call: &Request) -> Cmd {
        call.command("EVAL", self.text)
    }
}

/// The keys and arguments of one call.
pub(crate) struct Request {
    pub(crate) keys: Vec<String>,
    pub(crate) arguments: Vec<Vec<u8>>,
}

impl Request {
    /// Arguments of decide.lua, without the policies.
    pub(crate) fn decide(now: Option<Timestamp>, commit: bool, least_ttl: u64, id: AttemptId) -> Self {
        let flag = if commit { b"1".to_vec() } else { b"0".to_vec() };
        Self { keys: Vec::new(), arguments: vec![instant(now), flag, decimal(least_ttl), id.to_bytes().to_vec()] }
    }

    /// Arguments of settle.lua, without the acts.
    pub(crate) fn settle(now: Option<Timestamp>, least_ttl: u64, id: AttemptId) -> Self {
        Self { keys: Vec::new(), arguments: vec![instant(now), decimal(least_ttl), id.to_bytes().to_vec()] }
    }

    pub(crate) fn push(&mut self, key: String, argument: impl Into<Vec<u8>>) {
        self.keys.push(key);
        self.arguments.push(argument.into());
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys);
        for argument in &self.arguments {
            command.arg(argument.as_slice());
        }
        command
    }
}

/// Empty for the server's own time.
fn instant(now: Option<Timestamp>) -> Vec<u8> {
    now.map(|now| decimal(now.as_micros())).unwrap_or_default()
}

fn decimal(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}
