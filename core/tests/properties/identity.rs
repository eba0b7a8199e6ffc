//! Clients and spellings: what stands to the left never matters, and a canonical text is its own canonical text.

use doorkeep::{ClientIp, EmailOptions, canonical_email, canonical_username};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const PEER: &str = "10.0.0.1";
const HEADERS: [&str; 3] = ["x-forwarded-for", "forwarded", "x-real-ip"];

fn client_ip(header: &str) -> ClientIp {
    ClientIp::new(&["10.0.0.0/8", "2001:db8::/32"], header).unwrap()
}

fn resolved(header: &str, lines: &[Vec<u8>]) -> String {
    client_ip(header).resolve(PEER, lines).unwrap().to_string()
}

/// A hop: how it is written, its address if it is one, and whether that is trusted.
#[derive(Clone, Debug)]
struct Hop(&'static str, Option<&'static str>, bool);

fn hop() -> impl Strategy<Value = Hop> {
    select(vec![
        Hop("10.0.0.7", Some("10.0.0.7"), true),
        Hop("10.1.2.3:8080", Some("10.1.2.3"), true),
        Hop("::ffff:10.9.9.9", Some("10.9.9.9"), true),
        Hop("[2001:db8::9]:443", Some("2001:db8::9"), true),
        Hop("203.0.113.9", Some("203.0.113.9"), false),
        Hop("[::ffff:198.51.100.1]:1", Some("198.51.100.1"), false),
        Hop("2001:db9::1", Some("2001:db9::1"), false),
        Hop("unknown", None, false),
        Hop("_hidden", None, false),
        Hop("", None, false),
        Hop("\"", None, false),
        Hop("10.0.0.1.", None, false),
    ])
}

fn written(header: &str, hop: &Hop) -> String {
    match header {
        "forwarded" if hop.0.contains('"') => format!("for={};by=_x", hop.0),
        "forwarded" => format!("proto=https;for=\"{}\";host=\"a, for=6.6.6.6\"", hop.0),
        _ => hop.0.to_owned(),
    }
}

/// The walk as the documentation tells it.
fn walked(hops: &[Hop]) -> &'static str {
    let mut client = PEER;
    for Hop(_, address, is_trusted) in hops.iter().rev() {
        let Some(address) = address else { break };
        client = address;
        if !is_trusted {
            break;
        }
    }
    client
}

/// What a client would write to confuse: all bytes, those of the syntax more often.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        select(vec![",", "\"", "\\", ";", "=", "for=", "10.0.0.2", "6.6.6.6", " ", "[", "]", ":", "::1", "%"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[ .+@A-Za-z\u{df}\u{130}\u{131}\u{1e9e}\u{300}-\u{345}\u{a8}\u{3a3}\u{ac00}\u{1100}\u{1161}\u{11a8}]{1,4}",
        select(vec!["@gmail.com", "@example.com", "@b\u{fc}cher.de", "xn--", ".", "\u{3002}", "\u{ff20}"])
            .prop_map(String::from),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn is_stable(text: &str, options: EmailOptions) {
    if let Ok(email) = canonical_email(text, options) {
        assert_eq!(canonical_email(&email, options).as_ref(), Ok(&email), "{text:?}");
    }
    if let Ok(username) = canonical_username(text) {
        assert_eq!(canonical_username(&username).as_ref(), Ok(&username), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_header_from_any_peer_has_an_answer(
        peer in "\\PC{0,40}", lines in vec(hostile(), 0..4), header in select(&HEADERS[..])
    ) {
        let client = client_ip(header).resolve(&peer, &lines);
        let alone = client_ip(header).resolve::<&str>(&peer, &[]);
        prop_assert_eq!(client.is_some(), alone.is_some());
        let nobody_trusted = ClientIp::new(&[], header).unwrap();
        prop_assert_eq!(nobody_trusted.resolve(&peer, &lines), alone);
    }

    #[test]
    fn the_client_is_the_first_hop_from_the_right_that_is_not_trusted(
        hops in vec(hop(), 0..8), header in select(&HEADERS[..2]), breaks in any::<u8>()
    ) {
        let mut lines: Vec<String> = Vec::new();
        for (at, hop) in hops.iter().enumerate() {
            let text = written(header, hop);
            match lines.last_mut() {
                Some(line) if breaks >> at & 1 == 0 => line.push_str(&format!(", {text}")),
                _ => lines.push(text),
            }
        }
        let lines: Vec<Vec<u8>> = lines.into_iter().map(String::into_bytes).collect();
        prop_assert_eq!(resolved(header, &lines), walked(&hops));
    }

    #[test]
    fn what_the_client_wrote_cannot_change_what_the_proxies_appended(
        wrote in hostile(), before in vec(hostile(), 0..3), hops in vec(hop(), 0..5), header in select(&HEADERS[..2]),
        ends_in_quotes in any::<bool>(),
    ) {
        // The proxy appended an address that is not trusted, and the hops after it did what they liked.
        let mut appended = vec![Hop("192.0.2.1", Some("192.0.2.1"), false)];
        appended.extend(hops);
        let appended: Vec<String> = appended.iter().map(|hop| written(header, hop)).collect();
        let alone = resolved(header, &[appended.join(",").into_bytes()]);
        let mut line = wrote;
        line.extend_from_slice(if ends_in_quotes { b"\"," } else { b"," });
        line.extend_from_slice(appended.join(",").as_bytes());
        let mut lines = before;
        lines.push(line);
        prop_assert_eq!(resolved(header, &lines), alone);
    }

    #[test]
    fn only_the_end_of_a_header_is_looked_at(
        wrote in vec(hostile(), 2), end in hostile(), header in select(&HEADERS[..]), comma in any::<bool>()
    ) {
        let padding = if comma { b",10.0.0.9".repeat(ClientIp::REACH / 9 + 1) } else { vec![b' '; ClientIp::REACH] };
        let line = |start: &[u8]| [start, &padding[..], &end[..]].concat();
        prop_assert_eq!(resolved(header, &[line(&wrote[0])]), resolved(header, &[line(&wrote[1])]));
        let whole = line(&wrote[0]);
        let tail = whole[whole.len() - ClientIp::REACH..].to_vec();
        prop_assert_eq!(resolved(header, &[whole]), resolved(header, &[tail]));
    }

    #[test]
    fn a_canonical_text_is_its_own_canonical_text(
        text in any_text(), drop_tags in any::<bool>(), drop_gmail_dots in any::<bool>()
    ) {
        let options = EmailOptions { drop_tags, drop_gmail_dots };
        is_stable(&text, options);
        is_stable(&format!("{text}@gmail.com"), options);
        is_stable(&format!("ann@{text}"), options);
    }
}

#[test]
fn every_character_has_a_stable_spelling() {
    let options = EmailOptions { drop_tags: true, drop_gmail_dots: true };
    for c in '\0'..=char::MAX {
        let mut text = String::from(c);
        is_stable(&text, options);
        text.push_str("@gmail.com");
        is_stable(&text, options);
        is_stable(&format!("a{c}b@x{c}y.example"), options);
    }
}

#[test]
fn an_invisible_character_anywhere_changes_no_spelling() {
    let formats = ('\u{200b}'..='\u{200f}').chain('\u{2060}'..='\u{206f}').chain('\u{fe00}'..='\u{fe0f}');
    for c in formats.chain(['\u{ad}', '\u{34f}', '\u{180e}', '\u{feff}', '\u{3164}', '\u{e0061}', '\u{e0100}']) {
        for at in 0..=3 {
            let mut name = String::from("ann");
            name.insert(at, c);
            assert_eq!(canonical_username(&name).unwrap(), "ann", "{c:?}");
            let email = format!("{name}@{c}example.c{c}om");
            assert_eq!(canonical_email(&email, EmailOptions::default()).unwrap(), "ann@example.com", "{c:?}");
        }
    }
}

#[test]
fn the_warning_is_given_once_and_only_for_a_private_peer_or_a_unix_socket_without_trusted_proxies() {
    let seen = ["1.2.3.4"];
    for private in [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.1.1",
        "100.64.0.1",
        "fd00::1",
        "fe80::1%eth0",
        "::ffff:10.0.0.1",
        "",
    ] {
        let client_ip = ClientIp::new(&[], "x-forwarded-for").unwrap();
        assert_eq!(client_ip.warning::<&str>(private, &[]), None, "no header came");
        assert!(client_ip.warning(private, &seen).is_some(), "{private}");
        assert_eq!(client_ip.warning(private, &seen), None, "a second time");
    }
    let public = ClientIp::new(&[], "x-forwarded-for").unwrap();
    for peer in ["203.0.113.9", "100.128.0.1", "172.32.0.1", "2001:db8::1", "junk"] {
        assert_eq!(public.warning(peer, &seen), None, "{peer}");
    }
    for trusted in [client_ip("forwarded"), ClientIp::new(&["unix"], "x-forwarded-for").unwrap()] {
        assert_eq!(trusted.warning(PEER, &seen), None, "a proxy is trusted");
        assert_eq!(trusted.warning("", &seen), None, "a proxy is trusted");
    }
}

#[test]
fn without_proxies_every_forwarding_header_is_asked_for_and_with_them_one() {
    let names = |proxies: &[&str], header: &str| ClientIp::new(proxies, header).unwrap().header_names().join(" ");
    let all = "forwarded x-forwarded-for x-real-ip cf-connecting-ip true-client-ip";
    assert_eq!(names(&[], "Forwarded"), all);
    assert_eq!(
        names(&[], "X-Mine"),
        format!("x-mine {}", "x-forwarded-for forwarded x-real-ip cf-connecting-ip true-client-ip")
    );
    assert_eq!(names(&["::1"], "CF-Connecting-IP"), "cf-connecting-ip");
}
