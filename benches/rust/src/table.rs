//! The one table: goal beside measured.

pub(crate) struct Table(Vec<Row>);

struct Row {
    goal: &'static str,
    what: String,
    bound: f64,
    unit: &'static str,
    measured: f64,
    detail: String,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// A ratio that should not pass its bound; `detail` tells the absolute numbers.
    pub(crate) fn ratio(
        &mut self,
        goal: &'static str,
        what: impl Into<String>,
        bound: f64,
        measured: f64,
        detail: String,
    ) {
        self.0.push(Row { goal, what: what.into(), bound, unit: "x", measured, detail });
    }

    pub(crate) fn bytes(&mut self, goal: &'static str, what: &str, bound: f64, measured: f64, detail: String) {
        self.0.push(Row { goal, what: what.to_owned(), bound, unit: " B", measured, detail });
    }

    pub(crate) fn print(&self) {
        println!("| # | what | goal | measured | | absolute |");
        println!("|---|---|---|---|---|---|");
        for Row { goal, what, bound, unit, measured, detail } in &self.0 {
            let verdict = if measured <= bound { "met" } else { "MISSED" };
            println!("| {goal} | {what} | <= {bound}{unit} | {measured:.2}{unit} | {verdict} | {detail} |");
        }
    }
}
