//! Errors, converted to Python exceptions.
//!
//! Knows no limiter. Invariant: an error of the core becomes its class in `doorkeep.errors`, with the text of the core.

use doorkeep::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

pub(crate) type Result<T, E = Refused> = std::result::Result<T, E>;

/// An error of the core or of the lab, or an exception that Python raised while an argument was read.
pub(crate) enum Refused {
    Core(Error),
    Lab(doorkeep_lab::Error),
    Python(PyErr),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<doorkeep_lab::Error> for Refused {
    fn from(error: doorkeep_lab::Error) -> Self {
        Self::Lab(error)
    }
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Python(error) => error,
            Refused::Core(error) => raised(error.kind(), error.to_string()),
            Refused::Lab(error) => raised(ErrorKind::Config, error.to_string()),
        }
    }
}

fn raised(kind: ErrorKind, text: String) -> PyErr {
    Python::attach(|py| class_of(py, kind).map_or_else(|missing| missing, |class| PyErr::from_type(class, text)))
}

fn class_of(py: Python<'_>, kind: ErrorKind) -> PyResult<Bound<'_, PyType>> {
    match kind {
        ErrorKind::Config => CONFIG.import(py, "doorkeep.errors", "ConfigError"),
        ErrorKind::InvalidKey => INVALID_KEY.import(py, "doorkeep.errors", "InvalidKeyError"),
        _ => BASE.import(py, "doorkeep.errors", "DoorkeepError"),
    }
    .cloned()
}

static CONFIG: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INVALID_KEY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static BASE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
