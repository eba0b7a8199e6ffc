//! The processes that ask a limiter, and the store that they share or miss.
//!
//! Knows nothing of attackers. Invariant: a replica's own tables live exactly as long as one stay without the store, as
//! in production.

use doorkeep::{OnError, Reason};

use crate::error::Error;
use crate::scenario::{Outage, Store};
use crate::subject::{Answer, Request, Subject};

/// Makes a fresh subject with empty tables.
pub(crate) type Make<'a> = &'a dyn Fn() -> Result<Box<dyn Subject>, Error>;

/// Who answered, so that the end of an attempt goes where its beginning was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Store,
    Replica(u32),
    Nowhere,
}

pub(crate) struct Fleet<'a> {
    make: Make<'a>,
    /// The store's tables.
    shared: Option<Box<dyn Subject>>,
    own: Vec<Box<dyn Subject>>,
    on_error: OnError,
    outages: Vec<Outage>,
    is_down: bool,
    /// Evictions of tables that are gone.
    evicted: u64,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(make: Make<'a>, replicas: u32, store: Option<&Store>) -> Result<Self, Error> {
        let own = (0..replicas).map(|_| make()).collect::<Result<Vec<_>, Error>>()?;
        let shared = store.map(|_| make()).transpose()?;
        let (on_error, outages) = store.map_or_else(Default::default, |store| (store.on_error, store.outages.clone()));
        Ok(Self { make, shared, own, on_error, outages, is_down: false, evicted: 0 })
    }

    pub(crate) fn arrive(&mut self, replica: u32, request: &Request, now: u64) -> (Answer, Place) {
        match self.place(replica) {
            Place::Store => (self.shared.as_mut().expect("it is there").arrive(request, now), Place::Store),
            Place::Replica(replica) => {
                let answer = self.own[replica as usize].arrive(request, now);
                (Answer { degraded: self.is_down, ..answer }, Place::Replica(replica))
            }
            Place::Nowhere => (self.without_store(), Place::Nowhere),
        }
    }

    pub(crate) fn verified(&mut self, place: Place, request: &Request, now: u64) {
        match place {
            Place::Store => self.shared.as_mut().expect("it is there").verified(request, now),
            Place::Replica(replica) => self.own[replica as usize].verified(request, now),
            Place::Nowhere => {}
        }
    }

    /// The longest wait that any replica would tell.
    pub(crate) fn peek(&mut self, request: &Request, now: u64) -> Answer {
        let replicas = 0..self.replicas();
        let answers = replicas.map(|replica| match self.place(replica) {
            Place::Store => self.shared.as_mut().expect("it is there").peek(request, now),
            Place::Replica(replica) => self.own[replica as usize].peek(request, now),
            Place::Nowhere => self.without_store(),
        });
        answers.max_by_key(|answer| answer.wait.unwrap_or(u64::MAX)).unwrap_or(Answer::ALLOWED)
    }

    /// How many replicas answer differently now.
    pub(crate) fn replicas(&self) -> u32 {
        match self.place(0) {
            Place::Replica(_) => u32::try_from(self.own.len()).expect("at most 64"),
            _ => 1,
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down
    }

    /// When the store fails or comes back next.
    pub(crate) fn next_change(&self) -> Option<u64> {
        self.outages.first().map(|outage| if self.is_down { outage.until } else { outage.at })
    }

    /// When the store fails next.
    pub(crate) fn next_outage(&self) -> Option<u64> {
        self.outages.get(usize::from(self.is_down)).map(|outage| outage.at)
    }

    /// Makes the change that [`Fleet::next_change`] told of.
    pub(crate) fn change(&mut self) -> Result<(), Error> {
        let Some(outage) = self.outages.first().copied() else { return Ok(()) };
        self.is_down = !self.is_down;
        if self.is_down {
            return Ok(());
        }
        self.outages.remove(0);
        for own in &mut self.own {
            self.evicted += own.table().1;
            *own = (self.make)()?;
        }
        if let Some(shared) = self.shared.as_mut().filter(|_| outage.forgets) {
            self.evicted += shared.table().1;
            *shared = (self.make)()?;
        }
        Ok(())
    }

    /// How many keys are held in all, and how many were evicted so far.
    pub(crate) fn table(&self) -> (u64, u64) {
        let tables = self.own.iter().chain(&self.shared).map(|subject| subject.table());
        tables.fold((0, self.evicted), |sum, table| (sum.0 + table.0, sum.1 + table.1))
    }

    fn place(&self, replica: u32) -> Place {
        match (&self.shared, self.is_down, self.on_error) {
            (Some(_), false, _) => Place::Store,
            (None, ..) | (_, _, OnError::Local) => Place::Replica(replica),
            _ => Place::Nowhere,
        }
    }

    fn without_store(&self) -> Answer {
        match self.on_error {
            OnError::Closed => Answer { denied: Some(Reason::Unavailable), wait: None, ..Answer::ALLOWED },
            _ => Answer { degraded: true, ..Answer::ALLOWED },
        }
    }
}
