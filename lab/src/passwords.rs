//! How people choose passwords: the share of accounts that the first guesses open.
//!
//! Pure. Invariant: [`Passwords::opened`] never falls as guesses grow, and [`Passwords::rank`] is its inverse.

/// What the guesses are aimed at, the most popular password first.
///
/// ```
/// use doorkeep_lab::Passwords;
///
/// assert_eq!(Passwords::Head.opened(1), 0.00892);
/// assert_eq!(Passwords::Bits(10).opened(256), 0.25);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Passwords {
    /// The head of the RockYou list: 0.892 % use the first password, and 0.0089 · r^0.3655 the first r of 2 to 5,000.
    ///
    /// Within 0.35 points of the published 5 % after 116 guesses, 10 % after 683 and 20 % after 5,000. What comes
    /// later is not modelled: no guess beyond the 5,000th opens anything.
    Head,
    /// How many accounts use each password, in the order in which the attacker tries them.
    Counts(Counts),
    /// Passwords drawn evenly from 2^bits.
    Bits(u8),
    /// Pairs of another site: this share of accounts opens at the first guess, and no other does.
    Reused(f64),
    /// One-time codes: each guess hits one of `valid` among 10^`digits`, drawn anew.
    Codes {
        /// The length of a code: 1 to 12.
        digits: u8,
        /// How many codes are valid at once.
        valid: u32,
    },
}

/// Accounts by password, as running totals.
///
/// ```
/// use doorkeep_lab::{Counts, Passwords};
///
/// let passwords = Counts::new(&[5, 3, 2]).map(Passwords::Counts);
/// assert_eq!(passwords.map(|passwords| passwords.opened(2)), Some(0.8));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    running: Vec<u64>,
}

const HEAD_FIRST: f64 = 0.00892;
const HEAD_SCALE: f64 = 0.0089;
const HEAD_POWER: f64 = 0.3655;
const HEAD_LENGTH: u64 = 5000;

impl Counts {
    /// The counts of each password; none when there is none, or no account at all.
    #[must_use]
    pub fn new(counts: &[u64]) -> Option<Self> {
        let mut total = 0_u64;
        let running: Option<Vec<u64>> = counts
            .iter()
            .map(|count| {
                total = total.checked_add(*count)?;
                Some(total)
            })
            .collect();
        running.filter(|_| total > 0).map(|running| Self { running })
    }

    fn up_to(&self, guesses: u64) -> u64 {
        let tried = usize::try_from(guesses).unwrap_or(usize::MAX).min(self.running.len());
        if tried == 0 { 0 } else { self.running[tried - 1] }
    }
}

#[allow(clippy::cast_precision_loss, reason = "shares of accounts are not exact beyond 2^53")]
impl Passwords {
    /// The share of accounts that are open after this many guesses on each.
    #[must_use]
    pub fn opened(&self, guesses: u64) -> f64 {
        match self {
            _ if guesses == 0 => 0.0,
            Self::Head if guesses == 1 => HEAD_FIRST,
            Self::Head => HEAD_SCALE * libm::pow(guesses.min(HEAD_LENGTH) as f64, HEAD_POWER),
            Self::Counts(counts) => counts.up_to(guesses) as f64 / counts.up_to(u64::MAX) as f64,
            Self::Bits(bits) => (guesses as f64 / exp2(*bits)).min(1.0),
            Self::Reused(share) => *share,
            // 1 - (1 - hit)^guesses, whose digits 1 - hit would lose.
            Self::Codes { digits, valid } => -libm::expm1(guesses as f64 * libm::log1p(-hit(*digits, *valid))),
        }
    }

    /// The guess that opens the account which stands at `share` (0 up to 1) of all; none when no guess does.
    #[must_use]
    pub fn rank(&self, share: f64) -> Option<u64> {
        let found = match self {
            Self::Head if share < HEAD_FIRST => 1,
            Self::Head => self.settle(libm::pow(share / HEAD_SCALE, 1.0 / HEAD_POWER), HEAD_LENGTH, share)?,
            Self::Counts(counts) => {
                let total = counts.up_to(u64::MAX) as f64;
                counts.running.partition_point(|running| *running as f64 / total <= share) as u64 + 1
            }
            Self::Bits(bits) => self.settle(share * exp2(*bits), u64::MAX, share)?,
            Self::Reused(reused) => return (share < *reused).then_some(1),
            Self::Codes { digits, valid } => {
                let tries = libm::log1p(-share) / libm::log1p(-hit(*digits, *valid));
                self.settle(tries, u64::MAX, share)?
            }
        };
        Some(found)
    }

    /// The first guess that opens `share`, from a first estimate that rounding may have moved by some.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; the steps below mend it")]
    fn settle(&self, estimate: f64, last: u64, share: f64) -> Option<u64> {
        let mut rank = (estimate as u64).clamp(1, last);
        while self.opened(rank) <= share {
            rank = rank.checked_add(1).filter(|rank| *rank <= last)?;
        }
        while rank > 1 && self.opened(rank - 1) > share {
            rank -= 1;
        }
        Some(rank)
    }
}

/// The chance of one guess at a code.
fn hit(digits: u8, valid: u32) -> f64 {
    f64::from(valid) / libm::pow(10.0, f64::from(digits))
}

fn exp2(bits: u8) -> f64 {
    libm::ldexp(1.0, i32::from(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_head_model_is_within_0_35_points_of_the_published_rockyou_figures() {
        // Imperva, Consumer Password Worst Practices (2010).
        for (guesses, published) in [(116, 0.05), (683, 0.10), (5000, 0.20)] {
            assert!((Passwords::Head.opened(guesses) - published).abs() < 0.0035, "{guesses}");
        }
    }

    #[test]
    fn rank_is_the_first_guess_that_opens_the_share() {
        let models = [
            Passwords::Head,
            Passwords::Counts(Counts::new(&[50, 30, 0, 20]).unwrap()),
            Passwords::Bits(12),
            Passwords::Codes { digits: 3, valid: 2 },
        ];
        let mut rng = Rng::new(3, 0);
        for model in models {
            for _ in 0..2000 {
                let share = rng.unit();
                match model.rank(share) {
                    Some(rank) => assert!(
                        model.opened(rank - 1) <= share && share < model.opened(rank),
                        "{model:?} {share} {rank}"
                    ),
                    None => assert!(model.opened(u64::MAX) <= share, "{model:?} {share}"),
                }
            }
        }
    }

    #[test]
    fn counts_without_an_account_are_no_model() {
        assert_eq!(Counts::new(&[]), None);
        assert_eq!(Counts::new(&[0, 0]), None);
        assert_eq!(Counts::new(&[u64::MAX, 1]), None);
    }
}
