//! A proxy between a store and its server that does what networks do to connections.
//!
//! Knows no protocol. Invariant: a fault holds for the connections that stand and for those to come,
//! until the next one is set; what was held back then goes on its way, late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Pass,
    /// Takes everything and hands on nothing.
    Stall,
    /// Ends every connection at once, by a reset.
    Rst,
    /// Ends a connection after that many more bytes of replies.
    Cut(usize),
    /// Ends a connection after that many more bytes of requests.
    CutUp(usize),
    /// Hands on that many more bytes of replies, then nothing.
    Choke(usize),
    /// Keeps each reply back, from the first duration to the second, in turns.
    Delay(Duration, Duration),
    /// Loses what goes to the client.
    DropDown,
    /// Loses what goes to the server.
    DropUp,
    /// Answers each command with these bytes, and asks no server.
    Say(&'static [u8]),
}

/// What befalls the connections that stand. Those to come are sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Forgotten, as a middlebox does: nobody is told, and what comes later is swallowed.
    Forgotten,
    /// Half closed: the client sees an end, and what it writes is taken and swallowed.
    HalfClosed,
}

pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    runtime: Runtime,
}

struct Shared {
    fault: watch::Sender<Fault>,
    server: AtomicU16,
    accepted: AtomicUsize,
    /// What befell the connections up to a number.
    lost: watch::Sender<(usize, Loss)>,
    losses: watch::Sender<usize>,
    /// Bytes that were swallowed on lost connections.
    swallowed: AtomicUsize,
    /// Bytes and chunks since the fault was set.
    passed: AtomicUsize,
}

enum End {
    Closed,
    Reset,
    Lost(Loss),
}

impl Proxy {
    pub(crate) fn before(server: u16) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            fault: watch::Sender::new(Fault::Pass),
            server: AtomicU16::new(server),
            accepted: AtomicUsize::new(0),
            lost: watch::Sender::new((0, Loss::Forgotten)),
            losses: watch::Sender::new(0),
            swallowed: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
        });
        let of_listener = Arc::clone(&shared);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = 1 + of_listener.accepted.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&of_listener);
                tokio::spawn(async move { carry(client, number, &shared).await });
            }
        });
        Self { port, shared, runtime }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.shared.passed.store(0, Ordering::SeqCst);
        self.shared.fault.send_replace(fault);
    }

    /// Leads new connections to another server.
    pub(crate) fn lead_to(&self, server: u16) {
        self.shared.server.store(server, Ordering::SeqCst);
    }

    /// Loses the connection that stands. Those that were lost before stay lost as they were.
    pub(crate) fn lose(&self, loss: Loss) {
        let mut losses = self.shared.losses.subscribe();
        let before = *losses.borrow_and_update();
        self.shared.lost.send_replace((self.accepted(), loss));
        self.runtime.block_on(losses.wait_for(|losses| *losses > before)).expect("the proxy runs");
    }

    /// How many bytes came on connections after they were lost.
    pub(crate) fn swallowed(&self) -> usize {
        self.shared.swallowed.load(Ordering::SeqCst)
    }

    /// How many connections were made so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }
}

async fn carry(mut client: TcpStream, number: usize, shared: &Shared) {
    let server = TcpStream::connect(("127.0.0.1", shared.server.load(Ordering::SeqCst))).await;
    let Ok(mut server) = server else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut lost = shared.lost.subscribe();
    let end = {
        let ((from_client, mut to_client), (from_server, to_server)) = (client.split(), server.split());
        let (said_to, said) = tokio::sync::mpsc::unbounded_channel::<&'static [u8]>();
        tokio::select! {
            end = pump_up(from_client, to_server, said_to, shared) => end,
            end = pump_down(from_server, &mut to_client, said, shared) => end,
            lost = lost.wait_for(|(up_to, _)| *up_to >= number) => lost.map_or(End::Reset, |lost| End::Lost(lost.1)),
        }
    };
    match end {
        End::Closed => {}
        End::Reset => drop(client.set_zero_linger()),
        End::Lost(loss) => {
            if loss == Loss::HalfClosed {
                let _ = client.shutdown().await;
            }
            shared.losses.send_modify(|losses| *losses += 1);
            // The server's side stays open meanwhile.
            let mut bytes = vec![0; 65_536];
            while let Ok(count @ 1..) = client.read(&mut bytes).await {
                shared.swallowed.fetch_add(count, Ordering::SeqCst);
            }
        }
    }
}

async fn pump_up(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    say: tokio::sync::mpsc::UnboundedSender<&'static [u8]>,
    shared: &Shared,
) -> End {
    let (mut bytes, mut fault) = (vec![0; 65_536], shared.fault.subscribe());
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read,
            _ = fault.wait_for(|fault| *fault == Fault::Rst) => return End::Reset,
        };
        let Ok(count @ 1..) = read else { return End::Closed };
        let now = settled(&mut fault).await;
        match now {
            Fault::Rst => return End::Reset,
            Fault::DropUp => continue,
            Fault::Say(answer) => {
                let commands = 1 + bytes[..count].windows(3).filter(|window| window == b"\r\n*").count();
                (0..commands).for_each(|_| say.send(answer).unwrap_or(()));
                continue;
            }
            _ => {}
        }
        let limit = if let Fault::CutUp(limit) = now { limit } else { usize::MAX };
        let passed = if limit < usize::MAX { shared.passed.fetch_add(count, Ordering::SeqCst) } else { 0 };
        let going = count.min(limit.saturating_sub(passed));
        if to.write_all(&bytes[..going]).await.is_err() || going < count {
            return End::Closed;
        }
    }
}

async fn pump_down(
    mut from: ReadHalf<'_>,
    to: &mut WriteHalf<'_>,
    mut said: tokio::sync::mpsc::UnboundedReceiver<&'static [u8]>,
    shared: &Shared,
) -> End {
    let (mut bytes, mut fault) = (vec![0; 65_536], shared.fault.subscribe());
    loop {
        let read = tokio::select! {
            Some(answer) = said.recv() => {
                if to.write_all(answer).await.is_err() {
                    return End::Closed;
                }
                continue;
            }
            read = from.read(&mut bytes) => read,
        };
        let Ok(count @ 1..) = read else { return End::Closed };
        let mut going = count;
        match settled(&mut fault).await {
            Fault::DropDown => continue,
            Fault::Delay(least, most) => {
                let turn = shared.passed.fetch_add(1, Ordering::SeqCst) % 8;
                tokio::time::sleep(least + (most - least) * u32::try_from(turn).unwrap() / 7).await;
            }
            now @ (Fault::Cut(limit) | Fault::Choke(limit)) => {
                going = count.min(limit.saturating_sub(shared.passed.fetch_add(count, Ordering::SeqCst)));
                if going < count {
                    let _ = to.write_all(&bytes[..going]).await;
                    let _ = to.flush().await;
                    let _ = fault.wait_for(|fault| *fault != Fault::Choke(limit) || now == Fault::Cut(limit)).await;
                    return End::Closed;
                }
            }
            _ => {}
        }
        if to.write_all(&bytes[..going]).await.is_err() {
            return End::Closed;
        }
    }
}

/// The fault in force, once nothing stalls.
async fn settled(fault: &mut watch::Receiver<Fault>) -> Fault {
    fault.wait_for(|fault| *fault != Fault::Stall).await.map_or(Fault::Rst, |fault| *fault)
}
