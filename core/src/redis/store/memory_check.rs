//! Whether the server may drop our keys when its memory is full.

use redis::from_redis_value;

use crate::redis::store::connection::Connected;

/// The policy of a server that evicts; none where it does not, or does not say.
pub(super) async fn evicting_policy(mut connected: Connected) -> Option<String> {
    let info = connected.exchange(redis::cmd("INFO").arg("memory")).await.ok()?;
    policy_in(&from_redis_value::<String>(info).ok()?)
}

fn policy_in(info: &str) -> Option<String> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let limited = field("maxmemory")? != "0";
    let policy = field("maxmemory_policy")?;
    (limited && policy != "noeviction").then(|| policy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::policy_in;

    #[test]
    fn only_a_limited_server_with_an_evicting_policy_is_worth_a_warning() {
        let info = |max: &str, policy: &str| format!("# Memory\r\nmaxmemory:{max}\r\nmaxmemory_policy:{policy}\r\n");
        assert_eq!(policy_in(&info("1048576", "allkeys-lru")).as_deref(), Some("allkeys-lru"));
        assert_eq!(policy_in(&info("0", "allkeys-lru")), None);
        assert_eq!(policy_in(&info("1048576", "noeviction")), None);
        assert_eq!(policy_in(""), None);
    }
}
