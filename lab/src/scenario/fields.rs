//! The fields of one table of a scenario, and errors that say where they stand.
//!
//! Invariant: a field that nobody asked for is an error, so a misspelt one is never ignored.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::time::Duration;

use doorkeep::host::input::{self, Unit, Value};

use crate::error::{Error, shown};
use crate::scenario::node::{Data, Node};

/// A place in a scenario: its line, if it has one, and its path.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    line: Option<usize>,
    path: String,
}

impl Place {
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        let line = self.line.map(|line| format!(" line {line},")).unwrap_or_default();
        let path = if self.path.is_empty() { "the whole" } else { &self.path };
        Error::config(format!("scenario{line} {path}: {message}"))
    }
}

/// One table.
pub(crate) struct Fields<'a> {
    pub(crate) place: Place,
    fields: &'a [(String, Node)],
    asked: RefCell<Vec<&'static str>>,
}

/// One field, or the lack of it.
pub(crate) struct Field<'a> {
    pub(crate) place: Place,
    pub(crate) node: Option<&'a Node>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(node: &'a Node, path: impl Into<String>) -> Result<Self, Error> {
        let place = Place { line: node.line, path: path.into() };
        match &node.data {
            Data::Table(fields) => Ok(Self { place, fields, asked: RefCell::default() }),
            _ => Err(place.error("must be a table")),
        }
    }

    pub(crate) fn field(&self, name: &'static str) -> Field<'a> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&name) {
            asked.push(name);
        }
        // `null` in JSON is a field that is left out.
        let node = self.fields.iter().find(|(own, _)| own == name).map(|(_, node)| node);
        let node = node.filter(|node| node.data != Data::Nothing);
        let path = if self.place.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place.path) };
        Field { place: Place { line: node.map_or(self.place.line, |node| node.line), path }, node }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(own, node)| own == name && node.data != Data::Nothing)
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let asked = self.asked.into_inner();
        let Some((name, node)) = self.fields.iter().find(|(name, _)| !asked.contains(&name.as_str())) else {
            return Ok(());
        };
        let place = Place { line: node.line, path: self.place.path };
        Err(place.error(format!("unknown field, use {}, field=`{}`", asked.join(", "), shown(name))))
    }
}

impl<'a> Field<'a> {
    pub(crate) fn value(&self) -> Value<'a> {
        match self.node.map(|node| &node.data) {
            None => Value::Missing,
            Some(Data::Text(text)) => Value::Text(text),
            Some(Data::Integer(number)) => Value::Integer(*number),
            Some(Data::Float(number)) => Value::Float(*number),
            Some(Data::Bool(truth)) => Value::Bool(*truth),
            Some(_) => Value::Other,
        }
    }

    /// Asks the core, which knows the bounds and the default.
    pub(crate) fn judged<T>(&self, judge: impl FnOnce(Value<'a>) -> Result<T, doorkeep::Error>) -> Result<T, Error> {
        judge(self.value()).map_err(|error| self.place.error(error))
    }

    pub(crate) fn judged_duration(
        &self,
        judge: impl FnOnce(Value<'a>, Unit) -> Result<Duration, doorkeep::Error>,
    ) -> Result<Duration, Error> {
        self.judged(|value| judge(value, Unit::Seconds))
    }

    pub(crate) fn whole(&self, bounds: RangeInclusive<u32>, default: u32) -> Result<u32, Error> {
        if self.node.is_none() {
            return Ok(default);
        }
        let number = match self.value() {
            Value::Integer(number) => u32::try_from(number).ok().filter(|number| bounds.contains(number)),
            _ => None,
        };
        let (low, high) = bounds.into_inner();
        number.ok_or_else(|| self.error(format_args!("must be a whole number from {low} to {high}")))
    }

    /// A chance: 0 to 1.
    pub(crate) fn chance(&self, default: f64) -> Result<f64, Error> {
        #[allow(clippy::cast_precision_loss, reason = "only 0 and 1 pass")]
        let number = match self.value() {
            Value::Missing => Some(default),
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        };
        number.filter(|number| (0.0..=1.0).contains(number)).ok_or_else(|| self.error("must be a number from 0 to 1"))
    }

    pub(crate) fn truth(&self) -> Result<bool, Error> {
        match self.value() {
            Value::Missing => Ok(false),
            Value::Bool(truth) => Ok(truth),
            _ => Err(self.error("must be true or false")),
        }
    }

    /// A moment or a length of time in µs, from 0 on.
    pub(crate) fn time(&self, default: u64) -> Result<u64, Error> {
        match self.value() {
            Value::Missing => Ok(default),
            Value::Integer(0) => Ok(0),
            // `0s`: no duration, but a moment.
            Value::Text(text) if text.strip_prefix('0').is_some_and(is_a_unit) => Ok(0),
            _ => self.lasting(),
        }
    }

    /// A length of time in µs, from 1 on.
    pub(crate) fn lasting(&self) -> Result<u64, Error> {
        let name = self.place.path.rsplit('.').next().unwrap_or_default();
        let duration = self.judged_duration(|value, unit| input::duration(name, value, unit))?;
        Ok(u64::try_from(duration.as_micros()).expect("at most 2^48"))
    }

    pub(crate) fn text(&self) -> Result<&'a str, Error> {
        match self.value() {
            Value::Text(text) => Ok(text),
            Value::Missing => Err(self.place.error("is required")),
            _ => Err(self.error("must be a text")),
        }
    }

    pub(crate) fn texts(&self) -> Result<Vec<String>, Error> {
        let refused = || self.error("must be a list of texts");
        let of = |node: &Node| match &node.data {
            Data::Text(text) => Ok(text.clone()),
            _ => Err(refused()),
        };
        self.list()?.iter().map(of).collect()
    }

    /// A list; none is an empty one.
    pub(crate) fn list(&self) -> Result<&'a [Node], Error> {
        match self.node.map(|node| &node.data) {
            None => Ok(&[]),
            Some(Data::List(list)) => Ok(list),
            Some(_) => Err(self.error("must be a list")),
        }
    }

    /// Tables of a list, each with its place.
    pub(crate) fn tables(&self) -> Result<Vec<Fields<'a>>, Error> {
        let list = self.list()?.iter().enumerate();
        list.map(|(at, node)| Fields::of(node, format!("{}[{at}]", self.place.path))).collect()
    }

    pub(crate) fn table(&self) -> Result<Option<Fields<'a>>, Error> {
        self.node.map(|node| Fields::of(node, self.place.path.clone())).transpose()
    }

    /// An error about the value that stands there.
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        self.place.error(format_args!("{message}, value=`{}`", self.value()))
    }
}

fn is_a_unit(text: &str) -> bool {
    input::window(Value::Text(text), Unit::Seconds).is_ok() && text.chars().all(char::is_alphabetic)
}
