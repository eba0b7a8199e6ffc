//! Canonical emails and user names, made by the core.

use doorkeep::host::input;
use doorkeep::{EmailOptions, canonical_email, canonical_username};

use crate::call::Call;
use crate::failure::Result;
use crate::js;

/// `(text, dropTags, dropGmailDots)` -> the canonical email.
pub(crate) fn email(call: &Call<'_, ()>) -> Result {
    let options = EmailOptions {
        drop_tags: input::drop_tags(call.given(1)?.value())?,
        drop_gmail_dots: input::drop_gmail_dots(call.given(2)?.value())?,
    };
    let text = call.start_of_text(0, input::SPELLING_REACH)?;
    js::string(call.env, &canonical_email(input::email(text.as_deref())?, options)?)
}

/// `(text)` -> the canonical user name.
pub(crate) fn username(call: &Call<'_, ()>) -> Result {
    let text = call.start_of_text(0, input::SPELLING_REACH)?;
    js::string(call.env, &canonical_username(input::username(text.as_deref())?)?)
}
