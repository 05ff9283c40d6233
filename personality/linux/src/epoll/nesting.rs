//! Epoll instances that watch other instances: the limits on their nesting, and a look at all of
//! them together.
//!
//! A wakeup path is a chain of instances from one that watches a file up to one that no other
//! instance watches. A change of the file is reported along every path. So that this never takes
//! long, there are at most [`PATHS_MAXIMUM`] wakeup paths of a file, as on Linux. A look at an
//! instance goes down to the instances that it watches, and checks each only once ([`Look`]).

use super::{Epoll, EpollItem};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::time::Duration;
use unix::file::OpenFile;
use unix::poll::Readiness;
use unix::{Error, Result};

/// The longest chain of epoll instances in which each watches the next one.
const CHAIN_MAXIMUM: usize = 6;
/// The most wakeup paths of a file, by the number of instances on the path, from one on.
const PATHS_MAXIMUM: [u32; CHAIN_MAXIMUM] = [u32::MAX, 500, 100, 50, 10, 0];

/// The numbers of wakeup paths of a file or instance, by the number of instances on the path, from
/// one on.
type PathCounts = [u32; CHAIN_MAXIMUM];

/// Checks that `outer` may watch `file`. `ELOOP` if `file` is an instance that watches `outer`;
/// `EINVAL` if the chain of instances would be too long, or a file would have too many wakeup
/// paths.
pub(super) fn check(outer: &Epoll, file: &OpenFile) -> Result<()> {
    let Some(inner) = file.object_as::<Epoll>() else {
        // If no other instance watches `outer`, each new wakeup path has one instance only, and of
        // such paths there may be any number.
        return if outer.is_watched() { check_file(outer, file) } else { Ok(()) };
    };
    let mut below = Below { outer, heights: BTreeMap::new(), files: BTreeMap::new() };
    let height = below.height(&inner)?;
    if height + length(&Upwards::new(None).paths(outer)) > CHAIN_MAXIMUM {
        return Err(Error::EINVAL);
    }
    let mut upwards = Upwards::new(Some((&inner, outer)));
    let few = below.files.values().all(|file| are_few(&upwards.paths_of_file(file)));
    if few { Ok(()) } else { Err(Error::EINVAL) }
}

fn check_file(outer: &Epoll, file: &OpenFile) -> Result<()> {
    let mut upwards = Upwards::new(None);
    let mut paths = upwards.paths_of_file(file);
    add(&mut paths, &upwards.paths(outer));
    if are_few(&paths) { Ok(()) } else { Err(Error::EINVAL) }
}

fn add(sum: &mut PathCounts, more: &PathCounts) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

fn are_few(paths: &PathCounts) -> bool {
    paths.iter().zip(PATHS_MAXIMUM).all(|(count, maximum)| *count <= maximum)
}

/// The number of instances on the longest of these wakeup paths.
fn length(paths: &PathCounts) -> usize {
    paths.iter().rposition(|count| *count > 0).map_or(0, |index| index + 1)
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
    known: BTreeMap<usize, PathCounts>,
}

impl<'a> Upwards<'a> {
    fn new(more: Option<(&'a Epoll, &'a Epoll)>) -> Upwards<'a> {
        Upwards { more, known: BTreeMap::new() }
    }

    /// The wakeup paths from an instance upwards, itself included.
    fn paths(&mut self, instance: &Epoll) -> PathCounts {
        if let Some(paths) = self.known.get(&key(instance)) {
            return *paths;
        }
        let mut above = PathCounts::default();
        for watching in instance.watchers() {
            add(&mut above, &self.paths(&watching));
        }
        if let Some((watched, watching)) = self.more
            && core::ptr::eq(watched, instance)
        {
            add(&mut above, &self.paths(watching));
        }
        let mut paths = PathCounts::default();
        match length(&above) {
            0 => paths[0] = 1,
            _ => paths[1..].copy_from_slice(&above[..CHAIN_MAXIMUM - 1]),
        }
        self.known.insert(key(instance), paths);
        paths
    }

    /// The wakeup paths of a file that is no instance.
    fn paths_of_file(&mut self, file: &OpenFile) -> PathCounts {
        let mut paths = PathCounts::default();
        for watching in EpollItem::all_of(file).iter().filter_map(|item| item.instance()) {
            add(&mut paths, &self.paths(&watching));
        }
        paths
    }
}

/// The results of one look at instances. Each instance is checked once, on however many wakeup
/// paths it is.
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
