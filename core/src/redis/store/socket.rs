//! The socket under a connection, and what was seen on it.
//!
//! Knows no command. Invariant: once a connection is seen to have ended, nothing is written to it any
//! more. So a call is proven not to have run when its connection ended and no byte was written since
//! before the call was handed over.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use redis::io::tcp::socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::time;

/// After this long a call has the socket looked at before it is written. A runtime that stood still (a frozen
/// process, or one that runs only within calls) has not heard yet that the server hung up. In use nobody looks.
const LOOK_AFTER_MICROS: u64 = 1_000;
/// After this long a connection must answer a PING before a call is written. Middleboxes forget connections
/// without telling anybody, hardly any in less than half a minute; an answer costs one round trip in that time.
const ASK_AFTER_MICROS: u64 = 5_000_000;

/// What was seen on a socket, shared by it and those who call over it.
pub(super) struct Seen {
    /// How many bytes the operating system took.
    written: AtomicU64,
    has_ended: AtomicBool,
    /// When bytes came last, by the system's clock.
    heard_at: AtomicU64,
    /// Whether the next read asks the operating system itself.
    looks: AtomicBool,
}

/// What to do before a call is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fitness {
    Fit,
    /// Nothing came for long: it may be forgotten on the way.
    Silent,
    Ended,
}

impl Seen {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            written: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            heard_at: AtomicU64::new(time::system_micros()),
            looks: AtomicBool::new(false),
        })
    }

    pub(super) fn fitness(&self) -> Fitness {
        if self.has_ended.load(Ordering::Acquire) {
            return Fitness::Ended;
        }
        // Either way: a clock that was set is a reason to look, too.
        let silent_for = time::system_micros().abs_diff(self.heard_at.load(Ordering::Relaxed));
        if silent_for > LOOK_AFTER_MICROS {
            self.looks.store(true, Ordering::Release);
        }
        if silent_for > ASK_AFTER_MICROS { Fitness::Silent } else { Fitness::Fit }
    }

    /// To be taken before a call is handed over.
    pub(super) fn mark(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Whether nothing was written since the mark, and nothing will be.
    pub(super) fn is_unwritten_since(&self, mark: u64) -> bool {
        self.has_ended.load(Ordering::Acquire) && self.written.load(Ordering::Acquire) == mark
    }

    fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

pub(super) struct Socket<T> {
    stream: T,
    seen: Arc<Seen>,
}

impl<T> Socket<T> {
    pub(super) fn new(stream: T, seen: &Arc<Seen>) -> Self {
        Self { stream, seen: Arc::clone(seen) }
    }
}

/// Also when its runtime goes, and the task that reads it with that.
impl<T> Drop for Socket<T> {
    fn drop(&mut self) {
        self.seen.end();
    }
}

impl<T> AsyncRead for Socket<T>
where
    T: AsyncRead + Unpin,
    for<'a> SockRef<'a>: From<&'a T>,
{
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, seen } = self.get_mut();
        let (filled, had_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let mut read = Pin::new(&mut *stream).poll_read(context, buffer);
        if read.is_pending() && seen.looks.load(Ordering::Acquire) {
            read = look(stream, buffer);
            // What came may be the last words before the end: the next read looks again.
            if !matches!(read, Poll::Ready(Ok(()))) {
                seen.looks.store(false, Ordering::Relaxed);
            }
        }
        match &read {
            Poll::Ready(Ok(())) if buffer.filled().len() > filled => {
                seen.heard_at.store(time::system_micros(), Ordering::Relaxed);
            }
            Poll::Ready(Ok(())) if !had_room => {}
            Poll::Ready(_) => seen.end(),
            Poll::Pending => {}
        }
        read
    }
}

/// Reads past the runtime, which says only what it heard when it last waited for its sockets. The runtime was asked
/// first, so whatever comes later wakes the reader.
fn look<T>(stream: &T, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>>
where
    for<'a> SockRef<'a>: From<&'a T>,
{
    match (&*SockRef::from(stream)).read(buffer.initialize_unfilled()) {
        Ok(count) => {
            buffer.advance(count);
            Poll::Ready(Ok(()))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Poll::Pending,
        Err(error) => Poll::Ready(Err(error)),
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Socket<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, seen } = self.get_mut();
        if seen.has_ended.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let written = ready!(Pin::new(stream).poll_write(context, bytes));
        match &written {
            Ok(count) => drop(seen.written.fetch_add(*count as u64, Ordering::AcqRel)),
            Err(_) => seen.end(),
        }
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::{ASK_AFTER_MICROS, Fitness, LOOK_AFTER_MICROS, Seen, Socket};
    use crate::time;

    fn run<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    async fn pair() -> (Socket<TcpStream>, std::net::TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let theirs = listener.accept().await.unwrap().0.into_std().unwrap();
        (Socket::new(ours, &Seen::new()), theirs)
    }

    fn silent_for(seen: &Seen, micros: u64) {
        seen.heard_at.store(time::system_micros() - micros, Ordering::Relaxed);
    }

    #[test]
    fn a_look_finds_an_end_that_the_runtime_has_not_heard_of() {
        run(async {
            let (mut socket, theirs) = pair().await;
            let seen = socket.seen.clone();
            drop(theirs);
            silent_for(&seen, LOOK_AFTER_MICROS + 1);
            assert_eq!(seen.fitness(), Fitness::Fit);
            // The first poll, before this runtime waits for its sockets.
            let mut bytes = [0; 8];
            let mut read = std::pin::pin!(socket.read(&mut bytes));
            let first = std::future::poll_fn(|context| std::task::Poll::Ready(read.as_mut().poll(context))).await;
            assert!(matches!(first, std::task::Poll::Ready(Ok(0))), "{first:?}");
            assert_eq!(seen.fitness(), Fitness::Ended);
        });
    }

    #[test]
    fn nothing_is_written_after_the_end_was_seen() {
        run(async {
            let (mut socket, theirs) = pair().await;
            let seen = socket.seen.clone();
            socket.write_all(b"before").await.unwrap();
            let mark = seen.mark();
            assert_eq!(mark, 6);
            assert!(!seen.is_unwritten_since(mark), "it may be written yet");
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
            assert!(socket.write_all(b"after").await.is_err());
            assert!(seen.is_unwritten_since(mark));
        });
    }

    #[test]
    fn a_byte_that_was_written_before_the_end_proves_nothing() {
        run(async {
            let (mut socket, theirs) = pair().await;
            let seen = socket.seen.clone();
            let mark = seen.mark();
            socket.write_all(b"x").await.unwrap();
            drop(theirs);
            let _ = socket.read(&mut [0; 8]).await;
            assert_eq!(seen.fitness(), Fitness::Ended);
            assert!(!seen.is_unwritten_since(mark));
        });
    }

    #[test]
    fn a_socket_that_is_dropped_with_its_runtime_has_ended() {
        let seen = run(async { pair().await.0.seen.clone() });
        assert_eq!(seen.fitness(), Fitness::Ended);
    }

    #[test]
    fn a_connection_is_asked_after_long_silence_and_when_the_clock_was_set() {
        let seen = Seen::new();
        assert_eq!(seen.fitness(), Fitness::Fit);
        assert!(!seen.looks.load(Ordering::Relaxed), "in use nobody looks");
        silent_for(&seen, ASK_AFTER_MICROS - 1_000_000);
        assert_eq!(seen.fitness(), Fitness::Fit);
        assert!(seen.looks.load(Ordering::Relaxed));
        silent_for(&seen, ASK_AFTER_MICROS + 1);
        assert_eq!(seen.fitness(), Fitness::Silent);
        seen.heard_at.store(time::system_micros() + 3_600_000_000, Ordering::Relaxed);
        assert_eq!(seen.fitness(), Fitness::Silent, "the clock was set back");
    }
}
