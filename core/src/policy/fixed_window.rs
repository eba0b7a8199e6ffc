//! The fixed window as a pure step on `(start, count)`.
//!
//! Knows nothing of clocks, locks or stores. Invariant: the window opens at the first attempt, not
//! on the calendar, and is half-open: at exactly start + window the next one opens.
//! Specified by `tests/vectors/fixed-window.json`.

use crate::time::{Period, Timestamp};

/// Limit and length of a fixed window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) limit: u32,
    pub(crate) window: Period,
}

/// When a window opened and what it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) count: u32,
}

/// A window as a call at `now` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) window: Window,
    /// The start lay too far in the future; a call that writes stores the mended one.
    pub(crate) healed: bool,
    /// A window was open at `now`; otherwise the first attempt opens one.
    pub(crate) is_open: bool,
}

impl Policy {
    pub(crate) fn load(&self, state: Option<Window>, now: Timestamp) -> View {
        let now = now.as_micros();
        match state {
            Some(window) if window.start > now + self.window.as_micros() => {
                View { window: Window { start: now, ..window }, healed: true, is_open: true }
            }
            Some(window) if now < window.start + self.window.as_micros() => {
                View { window, healed: false, is_open: true }
            }
            _ => View { window: Window { start: now, count: 0 }, healed: false, is_open: false },
        }
    }

    /// The window after one more attempt, or the wait in µs until the next window opens.
    pub(crate) fn test(&self, view: &View, now: Timestamp) -> Result<Window, u64> {
        if view.window.count >= self.limit {
            return Err(self.reset_after(view, now));
        }
        Ok(Window { count: view.window.count + 1, ..view.window })
    }

    pub(crate) fn remaining(&self, window: Window) -> u32 {
        self.limit.saturating_sub(window.count)
    }

    /// The time until an open window elapses.
    pub(crate) fn reset_after(&self, view: &View, now: Timestamp) -> u64 {
        if view.is_open { view.window.start + self.window.as_micros() - now.as_micros() } else { 0 }
    }
}
