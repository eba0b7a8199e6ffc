//! The client behind trusted proxies: takes the headers of any framework and returns an address.
//!
//! Validates nothing. Invariant: nothing that a client can send raises, and only the end of a long line is read.

use std::borrow::Cow;

use doorkeep::ClientIp as Core;
use doorkeep::host::input;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyList, PyString, PyTuple};

use crate::convert::{Arg, end_of, read, text};
use crate::error::Result;

/// The address of the client behind proxies that you trust.
///
/// Starts at the peer of the socket and goes through one header from right to left, as long as hops are trusted. The
/// first hop that is not trusted is the client; if all are trusted, the leftmost is. An invalid hop ends the search at
/// the last trusted one. Without proxies the peer is the client, and headers are ignored. At most the last 64 hops and
/// 16 KiB of the header are read.
///
/// Parameters
/// ----------
/// trusted_proxies
///     Addresses and networks such as ``"10.0.0.0/8"``: strings or objects of `ipaddress`. List only your own proxies:
///     anything that connects from these addresses can claim any client address.
/// header
///     The header that they write: ``"x-forwarded-for"``, ``"forwarded"`` (RFC 7239), or any header with a single
///     address, such as ``"cf-connecting-ip"`` or ``"x-real-ip"``.
///
/// Raises
/// ------
/// ConfigError
///     A proxy is neither an address nor a network, or has bits set beyond its prefix; or the header is not a valid
///     name.
///
/// Examples
/// --------
/// >>> from doorkeep import ClientIp
/// >>> client_ip = ClientIp(["10.0.0.0/8"])
/// >>> client_ip.resolve("10.0.0.1", {"X-Forwarded-For": "198.51.100.7, 203.0.113.9"})
/// '203.0.113.9'
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct ClientIp {
    inner: Core,
}

#[pymethods]
impl ClientIp {
    #[new]
    #[pyo3(
        signature = (trusted_proxies=None, header=None),
        text_signature = "(trusted_proxies=(), header='x-forwarded-for')"
    )]
    fn new(trusted_proxies: Arg<'_, '_>, header: Arg<'_, '_>) -> Result<Self> {
        let proxies = read_proxies(trusted_proxies)?;
        let proxies: Vec<&str> = proxies.iter().map(String::as_str).collect();
        Ok(Self { inner: Core::new(&proxies, &read(header, input::client_ip_header)?)? })
    }

    /// Find the address of the client of one request.
    ///
    /// Nothing that a client sends raises. The logger ``doorkeep`` warns once if a forwarding header arrives from a
    /// private address although no proxy is trusted.
    ///
    /// Parameters
    /// ----------
    /// peer
    ///     The address of the other end of the socket: ``request.client.host``, ``REMOTE_ADDR``; `None` if there is
    ///     none.
    /// headers
    ///     A mapping of names to values, names in any case, or pairs of them as in ASGI's ``scope["headers"]``; strings
    ///     or bytes, and lists of values if a name occurs several times.
    ///
    /// Returns
    /// -------
    /// str or None
    ///     The address in canonical spelling; `None` if `peer` is not an address, as on a Unix socket.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     `peer` is neither a string nor `None`, or `headers` are not headers: a mistake in the program.
    fn resolve(&self, py: Python<'_>, peer: &Bound<'_, PyAny>, headers: &Bound<'_, PyAny>) -> Result<Option<String>> {
        let peer = peer_of(peer)?;
        let values = self.values(headers)?;
        let lines = values.iter().map(line).collect::<Result<Vec<_>>>()?;
        if let Some(warning) = self.inner.warning(&peer, &lines)
            && let Err(raised) = warn(py, warning)
        {
            // If a log handler raises, the request must still get its address.
            raised.write_unraisable(py, None);
        }
        Ok(self.inner.resolve(&peer, &lines).map(|address| address.to_string()))
    }

    /// The trusted networks, in canonical spelling.
    #[getter]
    fn trusted_proxies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.trusted_proxies().collect::<Vec<_>>())
    }

    /// The name of the header, in lower case.
    #[getter]
    fn header(&self) -> &str {
        self.inner.header()
    }

    fn __repr__(&self) -> String {
        let proxies: Vec<String> = self.inner.trusted_proxies().collect();
        format!("ClientIp({proxies:?}, {:?})", self.inner.header())
    }
}

impl ClientIp {
    /// The values of the headers that the core reads, in the order in which they arrived.
    fn values<'py>(&self, headers: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
        let names = self.inner.header_names();
        let mut values = Vec::new();
        let items = match headers.getattr_opt(intern!(headers.py(), "items"))? {
            Some(items) => items.call0()?,
            None => headers.clone(),
        };
        for pair in items.try_iter().map_err(|_| input::not_headers())? {
            let (name, value) = pair_of(&pair?)?;
            let is_asked_for = match text_or_bytes(&name)? {
                Some(name) => names.iter().any(|asked| name.eq_ignore_ascii_case(asked.as_bytes())),
                None => false,
            };
            if !is_asked_for || value.is_none() {
                continue;
            }
            if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
                values.extend(value.try_iter()?.collect::<PyResult<Vec<_>>>()?);
            } else {
                values.push(value);
            }
        }
        Ok(values)
    }
}

fn read_proxies(given: Arg<'_, '_>) -> Result<Vec<String>> {
    let Some(proxies) = given.filter(|object| !object.is_none()) else {
        return Ok(Vec::new());
    };
    // One proxy may be passed where several are expected, and a string must not be read letter by letter.
    if proxies.is_instance_of::<PyString>() || proxies.is_instance_of::<PyBytes>() {
        return Ok(vec![proxies.str()?.to_string_lossy().into_owned()]);
    }
    // Objects of `ipaddress` print as their address. The core refuses the string form of any other type.
    proxies.try_iter()?.map(|proxy| Ok(proxy?.str()?.to_string_lossy().into_owned())).collect()
}

fn peer_of(peer: &Bound<'_, PyAny>) -> Result<String> {
    match peer.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy().into_owned()),
        Err(_) if peer.is_none() => Ok(String::new()),
        Err(_) => Err(input::peer_not_text().into()),
    }
}

fn pair_of<'py>(pair: &Bound<'py, PyAny>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(pair) = pair.extract() {
        return Ok(pair);
    }
    // Some servers use lists; a string of two characters is not a pair.
    if let Ok(list) = pair.cast::<PyList>()
        && list.len() == 2
    {
        return Ok((list.get_item(0)?, list.get_item(1)?));
    }
    Err(input::not_headers().into())
}

/// One line of a header. A value that is neither a string nor bytes is empty.
fn line(value: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    let end = end_of(value, Core::REACH)?;
    let line = text_or_bytes(&end)?.unwrap_or_default();
    Ok(line[line.len().saturating_sub(Core::REACH)..].to_vec())
}

fn text_or_bytes<'a>(value: &'a Bound<'_, PyAny>) -> Result<Option<Cow<'a, [u8]>>> {
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(Some(Cow::Borrowed(bytes.as_bytes()))),
        Err(_) => text(value),
    }
}

fn warn(py: Python<'_>, warning: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("doorkeep",))?;
    let named = [("doorkeep_event", "untrusted_proxy")].into_py_dict(py)?;
    logger.call_method("warning", (warning,), Some(&[("extra", named)].into_py_dict(py)?)).map(drop)
}
