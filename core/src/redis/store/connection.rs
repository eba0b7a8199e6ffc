//! The one connection of a store, made at first use and made anew after it was dropped or has ended.
//!
//! Knows no script. Invariants: callers that find no usable connection wait for one attempt to connect,
//! not each for its own; a connection that ended or may be forgotten is replaced before a call is
//! written to it, so an end while nothing was under way fails no call.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::RwLock;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ConnectionInfo, RedisError, Value};
use tokio::sync::Mutex;

use crate::redis::store::road::{self, Driver};
use crate::redis::store::socket::{Fitness, Seen};
use crate::time::Timestamp;

const YOUNG_MICROS: u64 = 1_000_000;

#[derive(Clone)]
pub(super) struct Connected {
    connection: MultiplexedConnection,
    seen: Arc<Seen>,
    _driver: Arc<Driver>,
    /// Counts the connections of a slot, so that a late failure does not drop a newer one.
    pub(super) number: u64,
    made_at: Timestamp,
}

/// A command without an answer.
pub(super) struct Failure {
    pub(super) error: RedisError,
    /// Whether it is proven that no byte of it was written, and none will be: it cannot have run.
    pub(super) is_unwritten: bool,
}

#[derive(Default)]
pub(super) struct Slot {
    current: RwLock<Option<Connected>>,
    connecting: Mutex<u64>,
}

impl Slot {
    /// A connection that is fit for a call, made now if there is none. A silent one must answer within `patience`,
    /// or another is made meanwhile.
    pub(super) async fn get(&self, info: &ConnectionInfo, patience: Duration) -> Result<Connected, RedisError> {
        if let Some(connected) = self.fit() {
            return Ok(connected);
        }
        let mut number = self.connecting.lock().await;
        // Whoever held the lock may have connected, or asked, for all who waited.
        if let Some(connected) = self.fit() {
            return Ok(connected);
        }
        let next = *number + 1;
        let connecting = Connected::new(info, next);
        let connected = match self.current().filter(|connected| connected.seen.fitness() != Fitness::Ended) {
            Some(silent) => silent.or_when_it_answers(connecting, patience).await?,
            None => connecting.await?,
        };
        *number = connected.number;
        *self.current.write() = Some(connected.clone());
        Ok(connected)
    }

    pub(super) fn current(&self) -> Option<Connected> {
        self.current.read().clone()
    }

    fn fit(&self) -> Option<Connected> {
        self.current().filter(|connected| connected.seen.fitness() == Fitness::Fit)
    }

    /// Drops the connection, unless it is a newer one than the failing call used.
    pub(super) fn drop_up_to(&self, number: u64) {
        self.drop_if(|connected| connected.number <= number);
    }

    /// Like [`Slot::drop_up_to`], but spares a young connection: a server that stays read-only must not
    /// cost a connection a call.
    pub(super) fn drop_old_up_to(&self, number: u64) {
        let is_old = |connected: &Connected| Timestamp::now().since(connected.made_at) > YOUNG_MICROS;
        self.drop_if(|connected| connected.number <= number && is_old(connected));
    }

    fn drop_if(&self, condition: impl Fn(&Connected) -> bool) {
        let mut current = self.current.write();
        if current.as_ref().is_some_and(&condition) {
            *current = None;
        }
    }
}

impl Connected {
    async fn new(info: &ConnectionInfo, number: u64) -> Result<Self, RedisError> {
        let seen = Seen::new();
        let (connection, driver) = road::connect(info, &seen).await?;
        Ok(Self { connection, seen, _driver: Arc::new(driver), number, made_at: Timestamp::now() })
    }

    /// Sends one command. An error reply is an error here, not a value.
    pub(super) async fn exchange(&mut self, command: &Cmd) -> Result<Value, Failure> {
        let mark = self.seen.mark();
        let answer = self.connection.send_packed_command(command).await.and_then(Value::extract_error);
        answer.map_err(|error| Failure { error, is_unwritten: self.seen.is_unwritten_since(mark) })
    }

    /// This connection if it answers, another one if that is made first. The question is no script: that it may run
    /// late, or on two connections, is no harm.
    async fn or_when_it_answers(
        self,
        connecting: impl Future<Output = Result<Self, RedisError>>,
        patience: Duration,
    ) -> Result<Self, RedisError> {
        let mut asked = self.clone();
        // Any reply will do, a refusal too.
        let asking = async { asked.connection.send_packed_command(&redis::cmd("PING")).await.is_ok() };
        let (mut asking, mut connecting) = (pin!(asking), pin!(connecting));
        let mut may_answer = match tokio::time::timeout(patience, asking.as_mut()).await {
            Ok(true) => return Ok(self),
            Ok(false) => false,
            Err(_) => true,
        };
        let other = poll_fn(|context| {
            if may_answer && let Poll::Ready(answers) = asking.as_mut().poll(context) {
                if answers {
                    return Poll::Ready(Ok(None));
                }
                may_answer = false;
            }
            connecting.as_mut().poll(context).map_ok(Some)
        });
        Ok(other.await?.unwrap_or(self))
    }
}
