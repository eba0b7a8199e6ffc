//! The client behind trusted proxies: from header lines to the text of an address.

use doorkeep::ClientIp;
use doorkeep::host::input;

use crate::call::Call;
use crate::external::handle;
use crate::failure::Result;
use crate::js::{self, UNDEFINED};
use crate::text::with_text;
use crate::value::Given;

/// `(trustedProxies, header)` -> `{ handle, header, trustedProxies, headerNames, reach }`.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let proxies = call.texts(0)?;
    let proxies: Vec<&str> = proxies.iter().map(String::as_str).collect();
    let client_ip = ClientIp::new(&proxies, &input::client_ip_header(call.given(1)?.value())?)?;
    let made = js::object(call.env)?;
    let trusted: Vec<String> = client_ip.trusted_proxies().collect();
    js::set(call.env, made, c"trustedProxies", js::string(call.env, &trusted.join(","))?)?;
    js::set(call.env, made, c"header", js::string(call.env, client_ip.header())?)?;
    js::set(call.env, made, c"headerNames", js::string(call.env, &client_ip.header_names().join(","))?)?;
    js::set(call.env, made, c"reach", js::number(call.env, ClientIp::REACH as f64)?)?;
    js::set(call.env, made, c"handle", handle(call.env, client_ip)?)?;
    Ok(made)
}

/// `(clientIp, peer, lines)` -> the address; `undefined` when the peer is not an address.
pub(crate) fn resolve(call: &Call<'_, ()>) -> Result {
    let client_ip: &ClientIp = call.behind(0)?;
    match client_ip.resolve(&peer(call)?, &lines(call)?) {
        Some(address) => js::string(call.env, &address.to_string()),
        None => Ok(UNDEFINED),
    }
}

/// `(clientIp, peer, lines)` -> a warning, once; `undefined` otherwise.
pub(crate) fn warning(call: &Call<'_, ()>) -> Result {
    let client_ip: &ClientIp = call.behind(0)?;
    match client_ip.warning(&peer(call)?, &lines(call)?) {
        Some(warning) => js::string(call.env, warning),
        None => Ok(UNDEFINED),
    }
}

/// Refuses a value that is not headers.
pub(crate) fn not_headers(_: &Call<'_, ()>) -> Result {
    Err(input::not_headers().into())
}

fn peer(call: &Call<'_, ()>) -> Result<String> {
    match call.given(1)? {
        Given::Text(peer) => Ok(peer),
        Given::Missing => Ok(String::new()),
        _ => Err(input::peer_not_text().into()),
    }
}

fn lines(call: &Call<'_, ()>) -> Result<Vec<Vec<u8>>> {
    let line = |value| Ok(with_text(call.env, value, <[u8]>::to_vec)?.unwrap_or_default());
    call.elements(2)?.into_iter().map(line).collect()
}
