//! Results as columns: what a host turns into its own arrays.

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Counts, seconds or shares; NaN where there is nothing to tell.
    Numbers(Vec<f64>),
    /// Names.
    Texts(Vec<String>),
}

/// Columns of one length, by name.
///
/// ```
/// let table = doorkeep_lab::bounds_of("5/1m")?;
/// assert_eq!(table.numbers("admitted").map(<[f64]>::len), table.numbers("span_s").map(<[f64]>::len));
/// # Ok::<(), doorkeep_lab::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(pub Vec<(String, Column)>);

impl Table {
    /// The numbers of a column; none if there is no such column, or it holds texts.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Option<&[f64]> {
        self.0.iter().find_map(|(own, column)| match column {
            Column::Numbers(numbers) if own == name => Some(numbers.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn push(&mut self, name: impl Into<String>, numbers: impl IntoIterator<Item = f64>) {
        self.0.push((name.into(), Column::Numbers(numbers.into_iter().collect())));
    }

    pub(crate) fn push_texts(&mut self, name: &str, texts: impl IntoIterator<Item = &'static str>) {
        self.0.push((name.to_owned(), Column::Texts(texts.into_iter().map(str::to_owned).collect())));
    }
}

/// A count as a number, exact up to 2^53.
#[allow(clippy::cast_precision_loss, reason = "no run counts beyond 2^53")]
pub(crate) fn count(count: u64) -> f64 {
    count as f64
}

/// Microseconds as seconds; NaN for none.
pub(crate) fn seconds(micros: Option<u64>) -> f64 {
    micros.map_or(f64::NAN, |micros| count(micros) / 1e6)
}
