//! Epoll instances that watch other instances: the limits on how deep they may be nested and by how
//! many ways a change may reach an instance, and a look at all of them together.
//!
//! A way is a chain of instances from one that watches a file up to one that no other instance
//! watches. A change of the file is reported along every way. So that this never takes long, there
//! are at most [`WAYS_MAXIMUM`] ways, as on Linux. A look at an instance goes down to the instances
//! that it watches, and looks at each only once ([`Look`]).

use super::{Epoll, EpollItem};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::time::Duration;
use unix::file::OpenFile;
use unix::poll::Readiness;
use unix::{Error, Result};

/// The longest chain of epoll instances in which each watches the next one.
const CHAIN_MAXIMUM: usize = 6;
/// How many ways may lead up from a file, by the number of instances on the way, from one on.
const WAYS_MAXIMUM: [u32; CHAIN_MAXIMUM] = [u32::MAX, 500, 100, 50, 10, 0];

/// How many ways lead up from a file or instance, by the number of instances on the way, from one
/// on.
type Ways = [u32; CHAIN_MAXIMUM];

/// Checks that `outer` may watch `file`. `ELOOP` if `file` is an instance that watches `outer`;
/// `EINVAL` if the chain of instances would be too long, or too many ways would lead to a file.
pub(super) fn check(outer: &Epoll, file: &OpenFile) -> Result<()> {
    let Some(inner) = file.object_as::<Epoll>() else {
        // If no other instance watches `outer`, each new way has one instance only, and of such
        // ways there may be any number.
        return if outer.is_watched() { check_file(outer, file) } else { Ok(()) };
    };
    let mut below = Below { outer, heights: BTreeMap::new(), files: BTreeMap::new() };
    let height = below.height(&inner)?;
    if height + length(&Upwards::new(None).ways(outer)) > CHAIN_MAXIMUM {
        return Err(Error::EINVAL);
    }
    let mut upwards = Upwards::new(Some((&inner, outer)));
    let few = below.files.values().all(|file| are_few(&upwards.ways_of_file(file)));
    if few { Ok(()) } else { Err(Error::EINVAL) }
}

fn check_file(outer: &Epoll, file: &OpenFile) -> Result<()> {
    let mut upwards = Upwards::new(None);
    let mut ways = upwards.ways_of_file(file);
    add(&mut ways, &upwards.ways(outer));
    if are_few(&ways) { Ok(()) } else { Err(Error::EINVAL) }
}

fn add(sum: &mut Ways, more: &Ways) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

fn are_few(ways: &Ways) -> bool {
    ways.iter().zip(WAYS_MAXIMUM).all(|(count, maximum)| *count <= maximum)
}

/// The number of instances on the longest way.
fn length(ways: &Ways) -> usize {
    ways.iter().rposition(|count| *count > 0).map_or(0, |index| index + 1)
}

/// A number that identifies an epoll instance.
fn key(instance: &Epoll) -> usize {
    core::ptr::from_ref(instance) as usize
}

/// The instances and files that an instance watches, directly or through other instances.
struct Below<'a> {
    outer: &'a Epoll,
    heights: BTreeMap<usize, usize>,
    /// The watched files that are no instances, by the numbers of their descriptions.
    files: BTreeMap<u64, Arc<OpenFile>>,
}

impl Below<'_> {
    /// The number of instances on the longest chain from this one down, itself included.
    fn height(&mut self, instance: &Epoll) -> Result<usize> {
        if core::ptr::eq(instance, self.outer) {
            return Err(Error::ELOOP);
        }
        if let Some(height) = self.heights.get(&key(instance)) {
            return Ok(*height);
        }
        let mut height = 0;
        for item in instance.items() {
            let Some(file) = item.file() else { continue };
            match file.object_as::<Epoll>() {
                Some(inner) => height = height.max(self.height(&inner)?),
                None => drop(self.files.insert(file.id(), file)),
            }
        }
        self.heights.insert(key(instance), height + 1);
        Ok(height + 1)
    }
}

/// Which instance is watched by which others, with one more pair than exists now: (watched,
/// watching).
struct Upwards<'a> {
    more: Option<(&'a Epoll, &'a Epoll)>,
    known: BTreeMap<usize, Ways>,
}

impl<'a> Upwards<'a> {
    fn new(more: Option<(&'a Epoll, &'a Epoll)>) -> Upwards<'a> {
        Upwards { more, known: BTreeMap::new() }
    }

    /// The ways up from an instance, itself included.
    fn ways(&mut self, instance: &Epoll) -> Ways {
        if let Some(ways) = self.known.get(&key(instance)) {
            return *ways;
        }
        let mut above = Ways::default();
        for watching in instance.watchers() {
            add(&mut above, &self.ways(&watching));
        }
        if let Some((watched, watching)) = self.more
            && core::ptr::eq(watched, instance)
        {
            add(&mut above, &self.ways(watching));
        }
        let mut ways = Ways::default();
        match length(&above) {
            0 => ways[0] = 1,
            _ => ways[1..].copy_from_slice(&above[..CHAIN_MAXIMUM - 1]),
        }
        self.known.insert(key(instance), ways);
        ways
    }

    /// The ways up from a file that is no instance.
    fn ways_of_file(&mut self, file: &OpenFile) -> Ways {
        let mut ways = Ways::default();
        for watching in EpollItem::all_of(file).iter().filter_map(|item| item.instance()) {
            add(&mut ways, &self.ways(&watching));
        }
        ways
    }
}

/// The results of one look at instances: each is looked at once, by however many ways it is
/// watched.
#[derive(Default)]
pub(super) struct Look {
    ready: BTreeMap<usize, Readiness>,
    changes: BTreeMap<usize, Option<Duration>>,
}

impl Look {
    /// For which events a watched file is ready.
    pub(super) fn readiness(&mut self, item: &EpollItem, file: &OpenFile) -> Readiness {
        match item.watched_instance(file) {
            Some(inner) => self.readiness_of(&inner),
            None => file.readiness(),
        }
    }

    pub(super) fn readiness_of(&mut self, instance: &Epoll) -> Readiness {
        if let Some(ready) = self.ready.get(&key(instance)) {
            return *ready;
        }
        let ready = instance.look(self);
        self.ready.insert(key(instance), ready);
        ready
    }

    /// When the readiness of a file that `instance` watches next changes because of the time.
    pub(super) fn next_change(&mut self, instance: &Epoll) -> Option<Duration> {
        if let Some(change) = self.changes.get(&key(instance)) {
            return *change;
        }
        let mut first = None;
        for item in instance.timed_items() {
            let Some(file) = item.file() else { continue };
            let change = match item.watched_instance(&file) {
                Some(inner) => self.next_change(&inner),
                None => file.object().and_then(|object| object.next_change()),
            };
            first = first.into_iter().chain(change).min();
        }
        self.changes.insert(key(instance), first);
        first
    }
}
