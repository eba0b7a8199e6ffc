//! Advice on a set of rules that one endpoint asks together: what an attacker would do about them.
//!
//! Pure: sees rules, never keys or traffic. It knows what a rule is keyed by from the rule's words (`by`), so a rule
//! without words is named and nothing is concluded from what might be missing. Invariant: the sets that the
//! documentation recommends get no advice. Specified by `tests/vectors/lint.json`.

use std::fmt;
use std::time::Duration;

use crate::rule::Rule;

/// Words for the one whose secret is guessed.
const GUESSED: [&str; 4] = ["account", "email", "username", "user"];
/// A word for somebody who has proved already who they are: they can be locked out, but nothing of theirs is guessed.
const SUBJECT: &str = "subject";

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// OWASP ASVS 4.0.3, V2.2.1: failed attempts an hour on one account.
const ASVS_ATTEMPTS: u64 = 100;
/// What one subscriber is handed: within it, addresses cost nothing.
const WIDEST_SAFE_PREFIX: u8 = 64;

/// One piece of advice. Prints as words: what is wrong with which rule, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    rule: String,
    text: String,
}

impl Advice {
    /// The name of the rule that it is about.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Looks at the rules of one endpoint, in the order in which they are asked, and at the names of those that a success
/// forgives. No advice does not mean that the numbers suit the endpoint.
///
/// ```
/// use doorkeep::{lint::lint, presets};
///
/// let rules = [presets::login_ip(), presets::login_account_ip(), presets::login_account()];
/// assert!(lint(&rules, &["login-account-ip"]).is_empty());
/// let advice = lint(&rules[..2], &[]);
/// assert_eq!(advice[0].rule(), "login-account-ip");
/// ```
#[must_use]
pub fn lint(rules: &[Rule], forgive: &[&str]) -> Vec<Advice> {
    let mut paper = Paper(Vec::new());
    paper.each_rule(rules);
    // A rule that does not say what it is keyed by could be any that seems to be missing.
    if rules.iter().all(|rule| !rule.by().is_empty()) {
        paper.missing_rules(rules);
        paper.account_rules(rules);
    }
    paper.forgiven(rules, forgive);
    paper.0
}

/// What is being written down.
struct Paper(Vec<Advice>);

impl Paper {
    fn note(&mut self, rule: &str, text: &str) {
        self.0.push(Advice { rule: rule.to_owned(), text: format!("rule `{rule}` {text}") });
    }

    /// What can be said of a rule by itself.
    fn each_rule(&mut self, rules: &[Rule]) {
        for (i, rule) in rules.iter().enumerate() {
            let name = rule.name();
            if rules[..i].iter().any(|earlier| earlier.name() == name) {
                self.note(name, "stands twice: a limiter takes one rule of a name, so give each its own");
            }
            if rule.by().is_empty() {
                self.note(name, "does not say what it is keyed by, so the set cannot be judged: name it in `by`");
            }
            if rule.has(Rule::ADDRESS) && rule.ipv6_prefix() > WIDEST_SAFE_PREFIX {
                self.note(
                    name,
                    "tells IPv6 addresses of one network apart, and its owner has 2^64 of them: \
                     use an ipv6 prefix of at most 64",
                );
            }
            if name.split('-').any(|word| word.starts_with("nist")) {
                self.note(
                    name,
                    "is named after NIST SP 800-63B, whose 100 consecutive failures never expire: \
                     no rule of a limiter may claim them, since each ends",
                );
            }
        }
    }

    /// Attacks that nothing in the set is keyed against.
    fn missing_rules(&mut self, rules: &[Rule]) {
        let address_alone = rules.iter().find(|rule| rule.is_address_alone());
        let guessed = rules.iter().find(|rule| rule.is_guessed());
        match (guessed, address_alone) {
            (None, Some(address)) => self.note(
                address.name(),
                "bounds one address and nothing bounds an account, so many addresses guess one account without end: \
                 add a rule on the account, such as 20/1h,50/1d",
            ),
            (Some(guessed), None) => self.note(
                guessed.name(),
                "bounds an account and nothing bounds one address alone, so one address tries every account: \
                 add a rule on the address, such as 20/1m,200/1h",
            ),
            _ => {}
        }
        let pair = guessed.filter(|_| !rules.iter().any(|rule| rule.is_guessed() && rule.is_account_alone()));
        if let Some(pair) = pair {
            self.note(
                pair.name(),
                "is the only one on the account, and an attacker picks fresh combinations, one for each address: \
                 add a rule on the account alone, such as 20/1h,50/1d",
            );
        }
    }

    /// What anybody can do to an account under the rules on the account alone.
    fn account_rules(&mut self, rules: &[Rule]) {
        let client = rules.iter().position(|rule| rule.has(Rule::ADDRESS));
        for (i, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.is_account_alone()) {
            if client.is_some_and(|client| client < i) {
                continue;
            }
            if rule.threshold().is_some() {
                self.note(
                    rule.name(),
                    "locks an account out with no rule on the client before it, so anybody can lock the owner out: \
                     put a rule on the address, or on account and address, before it",
                );
            } else if client.is_some() {
                self.note(
                    rule.name(),
                    "stands before the rules on the client: put the client first, so that a client which is denied \
                     spends nothing of the account where rules are asked one after the other",
                );
            }
        }
        let bounds: Vec<&Rule> = rules.iter().filter(|rule| rule.is_guessed() && rule.is_account_alone()).collect();
        let most_in = |span| bounds.iter().map(|rule| rule.max_in(span)).min();
        let (Some(first), Some(in_hour), Some(in_day)) = (bounds.first(), most_in(HOUR), most_in(DAY)) else {
            return;
        };
        if !bounds.iter().any(|rule| rule.threshold().is_some() || rule.longest_period() >= HOUR) {
            let text = format!(
                "is the only defence of an account over a day and has no long window, so {in_day} guesses pass in 24 \
                 hours: add one, such as 50/1d"
            );
            self.note(first.name(), &text);
        } else if in_hour > ASVS_ATTEMPTS {
            let text = format!(
                "lets {in_hour} guesses on one account pass in an hour, and OWASP ASVS 4.0.3 V2.2.1 asks for at most \
                 {ASVS_ATTEMPTS}: 50/1h keeps it"
            );
            self.note(first.name(), &text);
        }
    }

    /// What a success wipes that is not its own.
    fn forgiven(&mut self, rules: &[Rule], forgive: &[&str]) {
        for name in forgive {
            match rules.iter().find(|rule| rule.name() == *name) {
                None => self.note(name, "is to be forgiven and is not in the set: name one that is asked"),
                Some(rule) if rule.is_address_alone() => self.note(
                    name,
                    "is keyed by the address and forgiven, so an attacker with one account of their own wipes it \
                     whenever they log in: give it back instead",
                ),
                Some(rule) if rule.is_account_alone() => self.note(
                    name,
                    "is keyed by the account alone and forgiven, so every login of the owner hands whoever guesses \
                     at the account a fresh budget: give it back instead",
                ),
                Some(_) => {}
            }
        }
    }
}

impl Rule {
    fn has(&self, word: &str) -> bool {
        self.by().iter().any(|has| has == word)
    }

    /// Whether guesses at one account count under it, perhaps together with what else it is keyed by.
    fn is_guessed(&self) -> bool {
        GUESSED.iter().any(|word| self.has(word))
    }

    /// Whether all who try one account share a budget.
    fn is_account_alone(&self) -> bool {
        let is_account = |word: &String| word == SUBJECT || GUESSED.contains(&word.as_str());
        !self.by().is_empty() && self.by().iter().all(is_account)
    }

    fn longest_period(&self) -> Duration {
        self.rates().into_iter().flatten().map(crate::Rate::period).max().unwrap_or_default()
    }
}
