//! The corpus as data: files, cases, and fields that must all be used.

use std::fs;
use std::path::Path;
use std::time::Duration;

use doorkeep::host::input;
use doorkeep::{Decision, Error, ErrorKind, Stats, Timestamp};
use serde_json::{Map, Value, json};

pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) cases: Vec<Fields>,
}

pub(crate) fn files() -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> File {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut file = Fields::new(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap());
    assert_eq!(file.number("format"), 1);
    file.text("about");
    let cases = file.list("cases").into_iter().map(Fields::new).collect();
    file.done(&name);
    File { name, cases }
}

/// A JSON object whose fields are taken one by one.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn new(value: Value) -> Self {
        match value {
            Value::Object(map) => Self(map),
            other => panic!("not an object: {other}"),
        }
    }

    pub(crate) fn take_if_any(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(crate) fn take(&mut self, name: &str) -> Value {
        self.take_if_any(name).unwrap_or_else(|| panic!("no field {name} in {:?}", self.0))
    }

    pub(crate) fn text(&mut self, name: &str) -> String {
        self.take(name).as_str().unwrap().to_owned()
    }

    pub(crate) fn number(&mut self, name: &str) -> u64 {
        let value = self.take(name);
        value.as_u64().unwrap_or_else(|| panic!("{name} is no whole number: {value}, beside {:?}", self.0))
    }

    pub(crate) fn narrow<T: TryFrom<u64, Error: std::fmt::Debug>>(&mut self, name: &str) -> T {
        T::try_from(self.number(name)).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    pub(crate) fn micros(&mut self, name: &str) -> Duration {
        Duration::from_micros(self.number(name))
    }

    /// An instant as a host passes it; one that no host can pass is judged all the same.
    pub(crate) fn now(&mut self) -> Result<Timestamp, Error> {
        let micros = self.take("now").as_i64().unwrap();
        match u64::try_from(micros) {
            Ok(micros) => Timestamp::from_micros(micros),
            Err(_) => input::now(input::Value::Float(micros as f64 / 1e3), input::Unit::Milliseconds),
        }
    }

    pub(crate) fn cost(&mut self) -> Result<u32, Error> {
        input::cost(input::Value::Integer(self.take("cost").as_i64().unwrap().into()))
    }

    pub(crate) fn list(&mut self, name: &str) -> Vec<Value> {
        self.take(name).as_array().unwrap().clone()
    }

    pub(crate) fn texts(&mut self, name: &str) -> Vec<String> {
        let list = self.take_if_any(name).map(|list| list.as_array().unwrap().clone()).unwrap_or_default();
        list.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn fields(&mut self, name: &str) -> Fields {
        Fields::new(self.take(name))
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (String, Value)> {
        self.0.into_iter()
    }

    pub(crate) fn done(&self, place: &str) {
        assert!(self.0.is_empty(), "{place}: fields that this runner does not know: {:?}", self.0);
    }
}

/// A text as the corpus writes it: as it is, by UTF-16 units, repeated, or a list of such pieces.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    if let Some(pieces) = value.as_array() {
        return pieces.iter().flat_map(bytes).collect();
    }
    if let Some(text) = value.as_str() {
        return text.as_bytes().to_vec();
    }
    let mut fields = Fields::new(value.clone());
    let bytes = match fields.take_if_any("utf16") {
        Some(units) => {
            let units = units.as_array().unwrap().iter().map(|unit| u16::try_from(unit.as_u64().unwrap()).unwrap());
            input::wtf8(&units.collect::<Vec<_>>())
        }
        None => {
            let text = fields.text("repeat");
            text.repeat(fields.narrow("times")).into_bytes()
        }
    };
    fields.done("text");
    bytes
}

pub(crate) fn decision(decision: &Decision) -> Value {
    json!({
        "outcome": decision.outcome.as_str(),
        "reason": decision.reason.map(doorkeep::Reason::as_str),
        "rule": decision.rule.as_deref(),
        "retry_after_us": decision.retry_after.map(micros),
        "remaining": decision.remaining,
        "reset_after_us": micros(decision.reset_after),
        "engaged": decision.engaged.iter().map(|rule| &**rule).collect::<Vec<_>>(),
    })
}

pub(crate) fn answer<T>(result: Result<T, Error>, shown: impl FnOnce(T) -> Value) -> Value {
    result.map_or_else(|error| failure(&error), shown)
}

pub(crate) fn failure(error: &Error) -> Value {
    let kind = match error.kind() {
        ErrorKind::Config => "config",
        ErrorKind::InvalidKey => "invalid_key",
        other => panic!("unknown kind {other:?}"),
    };
    json!({ "error": kind, "message": error.to_string() })
}

pub(crate) fn stats(stats: &Stats) -> Value {
    assert!(stats.store_failed.is_empty());
    json!({
        "allowed": stats.allowed,
        "denied": stats.denied,
        "evicted": stats.evicted,
        "tracked_keys": stats.tracked_keys,
    })
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
