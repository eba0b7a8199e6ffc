//! The lab: a scenario goes in as text, columns come out as the memory of numbers.
//!
//! Judges nothing. A run keeps its thread; whoever has others to serve runs it in a worker.

use std::ptr;

use doorkeep::host::input::Value;
use doorkeep::lab::{self, Column, Scenario, Table};
use napi::sys;

use crate::call::{self, Answer, Call, check, number, string};
use crate::failure::Failure;
use crate::value::{Given, NOT_A_TEXT, UNIT};

/// `(scenario)` -> name and columns of each table by turns.
pub(crate) fn simulate(call: &Call<'_, ()>) -> Answer {
    let outcome = Scenario::read(text(&call.given(0)?))?.run()?;
    let mut tables = Vec::new();
    for (name, table) in outcome.tables() {
        tables.push(string(call.env, name)?);
        tables.push(columns(call.env, table)?);
    }
    call::array(call.env, tables)
}

/// `(policy)` -> name and values of each column by turns.
pub(crate) fn bounds(call: &Call<'_, ()>) -> Answer {
    columns(call.env, &lab::bounds_of(text(&call.given(0)?))?)
}

/// `(name, names of arguments, their values)` -> a number; durations are milliseconds.
pub(crate) fn bound(call: &Call<'_, ()>) -> Answer {
    let names = call.texts(1)?;
    let given: Vec<Given> = (0..names.len()).map(|at| call.member(2, at)).collect::<Result<_, Failure>>()?;
    let arguments: Vec<(&str, Value<'_>)> =
        names.iter().zip(&given).map(|(name, given)| (name.as_str(), given.value())).collect();
    number(call.env, lab::bound(text(&call.given(0)?), &arguments, UNIT)?)
}

fn text(given: &Given) -> &str {
    given.name().unwrap_or(NOT_A_TEXT)
}

fn columns(env: sys::napi_env, table: &Table) -> Answer {
    let mut columns = Vec::new();
    for (name, column) in &table.0 {
        columns.push(string(env, name)?);
        columns.push(match column {
            Column::Numbers(numbers) => memory(env, numbers)?,
            Column::Texts(texts) => call::strings(env, texts.iter().map(String::as_str))?,
        });
    }
    call::array(env, columns)
}

/// An ArrayBuffer; TypeScript lays the array of numbers over it, which has to be of its own realm.
fn memory(env: sys::napi_env, numbers: &[f64]) -> Answer {
    let (mut data, mut made) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: `data` and `made` are places for what they name.
    check(unsafe { sys::napi_create_arraybuffer(env, size_of_val(numbers), &mut data, &mut made) })?;
    if !numbers.is_empty() {
        // SAFETY: the engine made room for as many bytes, and both ends are no part of each other.
        unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), data.cast::<u8>(), size_of_val(numbers)) };
    }
    Ok(made)
}
