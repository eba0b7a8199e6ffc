//! The members of `doorkeep.Outcome`, looked up once.
//!
//! The enum itself is written in Python, since it has to be a real `IntEnum`. Invariant: its members are the outcomes
//! of the core.

use doorkeep::Outcome;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The Python member for an outcome.
pub(crate) fn member(py: Python<'_>, outcome: Outcome) -> PyResult<Py<PyAny>> {
    let members = MEMBERS.get_or_try_init(py, || load(py))?;
    let index = match outcome {
        Outcome::Denied => 0,
        Outcome::Allowed => 1,
        Outcome::AllowedLast => 2,
    };
    Ok(members[index].clone_ref(py))
}

/// The outcome for a member, or for a number equal to one.
pub(crate) fn outcome(number: u8) -> Outcome {
    match number {
        1 => Outcome::Allowed,
        2 => Outcome::AllowedLast,
        _ => Outcome::Denied,
    }
}

fn load(py: Python<'_>) -> PyResult<[Py<PyAny>; 3]> {
    let class = py.import("doorkeep._outcome")?.getattr("Outcome")?;
    Ok([
        class.getattr("DENIED")?.unbind(),
        class.getattr("ALLOWED")?.unbind(),
        class.getattr("ALLOWED_LAST_ATTEMPT")?.unbind(),
    ])
}

static MEMBERS: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();
