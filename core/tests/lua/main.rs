//! The rules that the two scripts keep, so that they run alike on every server and under every Lua.
//!
//! Read from the sources: what a server would only show at the edge of its numbers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

const SCRIPTS: [(&str, &str); 2] = [
    ("decide.lua", include_str!("../../src/redis/store/decide.lua")),
    ("settle.lua", include_str!("../../src/redis/store/settle.lua")),
];

/// The code of a script: without comments and without texts.
fn code(source: &str) -> String {
    let without = |line: &str| {
        let mut code = String::new();
        let mut quoted = false;
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    code.push(c);
                }
                '-' if !quoted && rest.peek() == Some(&'-') => break,
                _ if quoted => {}
                c => code.push(c),
            }
        }
        code
    };
    source.lines().map(without).collect::<Vec<_>>().join("\n")
}

fn each_code(check: impl Fn(&str, &str)) {
    for (name, source) in SCRIPTS {
        check(name, &code(source));
    }
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn scripts_turn_numbers_into_text_only_by_format() {
    // `tostring` loses digits above 1e14, and so does joining a number to a text.
    each_code(|name, code| assert_eq!(count(code, "tostring"), 0, "{name}"));
    for (name, source) in SCRIPTS {
        let formats = count(source, "string.format(");
        assert!(formats > 0 && formats == count(source, "string.format('%.0f', "), "{name}: a format that is not %.0f");
    }
}

#[test]
fn scripts_divide_by_the_one_division_that_all_versions_share() {
    each_code(|name, code| assert_eq!(count(code, "//"), 0, "{name}"));
}

#[test]
fn scripts_never_call_unpack() {
    // It is a global under 5.1 and a field of `table` under 5.4; `struct.unpack` is another thing.
    each_code(|name, code| {
        assert_eq!(count(code, "unpack("), 0, "{name}");
        assert_eq!(count(code, "table.unpack"), 0, "{name}");
    });
}

#[test]
fn scripts_read_the_clock_once_and_outside_of_loops_and_functions() {
    for (name, source) in SCRIPTS {
        assert_eq!(count(source, "'TIME'"), 1, "{name}");
        let (before, _) = source.split_once("'TIME'").unwrap();
        let before = code(before);
        assert_eq!(count(&before, "for ") + count(&before, "function"), 0, "{name}: TIME may be read more than once");
    }
}

#[test]
fn scripts_touch_only_the_keys_that_they_were_given() {
    for (name, source) in SCRIPTS {
        let calls: Vec<&str> = source.match_indices("redis.").map(|(at, _)| &source[at..]).collect();
        for call in calls {
            let is_known = [
                "redis.call('TIME')",
                "redis.call('DEL', key)",
                "redis.call('SET', key, ",
                "redis.pcall('GETRANGE', key, '0', LONGEST)",
                "redis.pcall('GET', key)",
            ]
            .iter()
            .any(|known| call.starts_with(known));
            // The function itself, handed on to what writes.
            let is_handed_on = ["redis.call,", "redis.pcall,"].iter().any(|handed| call.starts_with(handed));
            assert!(is_known || is_handed_on, "{name}: {}", &call[..40.min(call.len())]);
        }
        let code = code(source);
        assert_eq!(count(&code, "KEYS"), count(&code, "ipairs(KEYS)") + count(&code, "KEYS[i]"), "{name}");
    }
}

#[test]
fn scripts_read_at_most_a_byte_more_than_the_longest_state() {
    // 1024 strikes: version, flag, time, ids. The byte above shows that a value is no state of ours.
    let longest = 1 + 1 + 8 + 8 * 1024;
    for (name, source) in SCRIPTS {
        assert_eq!(count(source, &format!("local LONGEST = '{longest}'\n")), 1, "{name}");
        // A whole value is read only where nothing, or an empty one, can stand.
        let whole: Vec<&str> = source.lines().filter(|line| line.contains("'GET'")).collect();
        assert!(whole.iter().all(|line| line.contains("raw == ''")), "{name}: {whole:?}");
    }
}

#[test]
fn scripts_have_no_shebang_and_no_loop_but_over_the_call() {
    for (name, source) in SCRIPTS {
        assert!(!source.starts_with("#!"), "{name} would be refused as a whole by a server that is full");
        let code = code(source);
        let loops: Vec<&str> = code.lines().map(str::trim).filter(|line| line.starts_with("for ")).collect();
        let bounded = ["ipairs(KEYS)", "ipairs(steps)", "= 1, rates do"];
        assert!(loops.iter().all(|line| bounded.iter().any(|bound| line.contains(bound))), "{name}: {loops:?}");
    }
}
