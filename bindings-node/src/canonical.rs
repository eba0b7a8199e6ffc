//! One spelling for each account, made by the core.

use doorkeep::{EmailOptions, canonical_email, canonical_username, input};

use crate::call::{self, Answer, Call};

/// `(text, dropTags, dropGmailDots)` -> the canonical email.
pub(crate) fn email(call: &Call<'_, ()>) -> Answer {
    let options = EmailOptions {
        drop_tags: input::drop_tags(call.given(1)?.value())?,
        drop_gmail_dots: input::drop_gmail_dots(call.given(2)?.value())?,
    };
    let made = call.text(0, |bytes| canonical_email(input::email(Some(bytes))?, options))?;
    call::string(call.env, &made.unwrap_or_else(|| Err(input::email(None).expect_err("no text is none")))?)
}

/// `(text)` -> the canonical user name.
pub(crate) fn username(call: &Call<'_, ()>) -> Answer {
    let made = call.text(0, |bytes| canonical_username(input::username(Some(bytes))?))?;
    call::string(call.env, &made.unwrap_or_else(|| Err(input::username(None).expect_err("no text is none")))?)
}
