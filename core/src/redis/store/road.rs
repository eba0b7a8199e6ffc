//! The way to a server: names, sockets, TLS, and the task that drives what was connected.
//!
//! The crate redis connects by itself too, but shows nobody its socket, and what was seen on the socket is what
//! `connection` lives on. Knows no deadline: whoever calls has one.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsConnector;

use crate::redis::store::socket::{Seen, Socket};

/// How many commands may wait to be written; a burst above it waits for the socket.
const QUEUED_COMMANDS: usize = 1024;

/// Keeps middleboxes from forgetting an idle connection, most of which do so after minutes, and finds a dead server
/// within a minute. No TCP_USER_TIMEOUT beside it: that would bound what was written and not acknowledged, and two
/// calls without an answer give the connection up much sooner.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(30)).with_interval(Duration::from_secs(10)).with_retries(3);

/// Ends the task that reads and writes with the last of those who call over it.
pub(super) struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) async fn connect(
    info: &ConnectionInfo,
    seen: &Arc<Seen>,
) -> Result<(MultiplexedConnection, Driver), RedisError> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => drive(info, tcp(host, *port, seen).await?).await,
        ConnectionAddr::TcpTls { host, port, insecure, .. } => {
            let connector = TlsConnector::from(Arc::new(trust(*insecure)?));
            let name = ServerName::try_from(host.as_str())?.to_owned();
            drive(info, connector.connect(name, tcp(host, *port, seen).await?).await?).await
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => {
            drive(info, Socket::new(tokio::net::UnixStream::connect(path).await?, seen)).await
        }
        _ => Err((ErrorKind::InvalidClientConfig, "an address of another kind").into()),
    }
}

/// Greets the server and drives the connection from then on.
async fn drive<S>(info: &ConnectionInfo, stream: S) -> Result<(MultiplexedConnection, Driver), RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(QUEUED_COMMANDS);
    let (connection, driver) = MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await?;
    Ok((connection, Driver(tokio::spawn(driver).abort_handle())))
}

/// All addresses of a name at once: one of them may lead nowhere, and the first that answers is as good as any.
async fn tcp(host: &str, port: u16, seen: &Arc<Seen>) -> Result<Socket<TcpStream>, RedisError> {
    let mut attempts = JoinSet::new();
    for address in lookup_host((host, port)).await? {
        attempts.spawn(TcpStream::connect(address));
    }
    let mut failure = RedisError::from((ErrorKind::InvalidClientConfig, "the name has no address"));
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(stream)) => {
                // Where the system refuses it, connections are asked after silence all the same.
                let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEP_ALIVE);
                return Ok(Socket::new(stream, seen));
            }
            Ok(Err(error)) => failure = error.into(),
            // Only when the runtime ends, and this call with it.
            Err(_) => {}
        }
    }
    Err(failure)
}

/// The authorities of the system, or those that `SSL_CERT_FILE` names: read anew, since they are changed while
/// processes run.
fn trust(insecure: bool) -> Result<ClientConfig, RedisError> {
    if insecure {
        return Err((ErrorKind::InvalidClientConfig, "TLS without trust is not supported").into());
    }
    let mut found = rustls_native_certs::load_native_certs();
    if let Some(error) = found.errors.pop() {
        return Err(error.into());
    }
    let mut authorities = RootCertStore::empty();
    for certificate in found.certs {
        authorities.add(certificate)?;
    }
    Ok(ClientConfig::builder().with_root_certificates(authorities).with_no_client_auth())
}
