//! A scenario file as a tree whose nodes know their lines, whichever language it was written in.
//!
//! Judges nothing but the syntax.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, shown};

/// A value, and the line that it stands on; JSON from a host has none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) data: Data,
    pub(crate) line: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Table(Vec<(String, Node)>),
    List(Vec<Node>),
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    Nothing,
    /// A date, which no field takes.
    Other,
}

impl Node {
    /// Reads TOML, or JSON if the text begins with a brace.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        if text.trim_start().starts_with('{') { Self::from_json(text) } else { Self::from_toml(text) }
    }

    fn from_toml(text: &str) -> Result<Self, Error> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|error| {
            let line = lines.at(error.span().map_or(0, |span| span.start));
            Error::config(format!("scenario line {line}: not TOML, {}", first_line(error.message())))
        })?;
        Ok(Self { data: lines.table(table.get_ref()), line: Some(1) })
    }

    fn from_json(text: &str) -> Result<Self, Error> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| {
            Error::config(format!(
                "scenario line {}: not JSON, {}",
                error.line(),
                error.to_string().split(" at line").next().unwrap_or_default()
            ))
        })?;
        Ok(from_json(value))
    }

    /// The same tree without its lines. What JSON has no word for, and no field takes, becomes nothing.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.data {
            Data::Table(fields) => fields.iter().map(|(key, node)| (key.clone(), node.to_json())).collect(),
            Data::List(list) => list.iter().map(Self::to_json).collect(),
            Data::Text(text) => Value::String(text.clone()),
            Data::Integer(number) => i64::try_from(*number).map_or(Value::Null, Value::from),
            Data::Float(number) => Value::from(*number),
            Data::Bool(truth) => Value::Bool(*truth),
            Data::Nothing | Data::Other => Value::Null,
        }
    }
}

/// The messages of a parser may show several lines of the file.
fn first_line(message: &str) -> String {
    shown(message.lines().next().unwrap_or_default())
}

struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// Counted from 1.
    fn at(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|end| *end < offset)
    }

    fn table(&self, table: &DeTable<'_>) -> Data {
        let mut fields: Vec<(usize, String, Node)> = table
            .iter()
            .map(|(key, value)| (key.span().start, key.get_ref().to_string(), self.node(key.span().start, value)))
            .collect();
        fields.sort_by_key(|(at, ..)| *at);
        Data::Table(fields.into_iter().map(|(_, key, node)| (key, node)).collect())
    }

    fn node(&self, at: usize, value: &Spanned<DeValue<'_>>) -> Node {
        let data = match value.get_ref() {
            DeValue::Table(table) => self.table(table),
            DeValue::Array(list) => Data::List(list.iter().map(|value| self.node(value.span().start, value)).collect()),
            DeValue::String(text) => Data::Text(text.to_string()),
            DeValue::Integer(number) => {
                i128::from_str_radix(number.as_str(), number.radix()).map_or(Data::Other, Data::Integer)
            }
            DeValue::Float(number) => number.as_str().parse().map_or(Data::Other, Data::Float),
            DeValue::Boolean(truth) => Data::Bool(*truth),
            DeValue::Datetime(_) => Data::Other,
        };
        Node { data, line: Some(self.at(at)) }
    }
}

fn from_json(value: serde_json::Value) -> Node {
    use serde_json::Value;
    let data = match value {
        Value::Null => Data::Nothing,
        Value::Bool(truth) => Data::Bool(truth),
        Value::Number(number) => match number.as_i128() {
            Some(whole) => Data::Integer(whole),
            None => Data::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Data::Text(text),
        Value::Array(list) => Data::List(list.into_iter().map(from_json).collect()),
        Value::Object(fields) => Data::Table(fields.into_iter().map(|(key, value)| (key, from_json(value))).collect()),
    };
    Node { data, line: None }
}
