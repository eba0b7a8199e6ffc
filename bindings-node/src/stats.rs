//! Counters as JSON text: read rarely, and their names need no escaping (rules match `[a-z0-9-]{1,32}`).

use std::collections::BTreeMap;
use std::fmt::Display;

use doorkeep::Stats;

use crate::call::Call;
use crate::failure::Result;
use crate::js;

/// Returns the counters as JSON in the shape of `../lib/limiters/stats.ts`.
pub(crate) fn answer<T>(call: &Call<'_, T>, stats: &Stats) -> Result {
    let denied: BTreeMap<&String, String> =
        stats.denied.iter().map(|(rule, reasons)| (rule, object(reasons))).collect();
    let text = format!(
        r#"{{"allowed":{},"denied":{},"storeFailed":{},"evicted":{},"trackedKeys":{}}}"#,
        object(&stats.allowed),
        object(&denied),
        object(&stats.store_failed),
        stats.evicted,
        stats.tracked_keys,
    );
    js::string(call.env, &text)
}

fn object<K: Display, V: Display>(entries: &BTreeMap<K, V>) -> String {
    let members: Vec<String> = entries.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
    format!("{{{}}}", members.join(","))
}
