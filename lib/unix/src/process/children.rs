//! The children of a process, by what wait and job control ask of them: none of their questions looks at each child.

use super::Pid;
use super::records::{Phase, Stop};
use super::standing::Standing;
use super::wait::{WaitFor, WaitOptions};
use crate::signal::{ChildEvent, Signal};
use alloc::collections::{BTreeMap, BTreeSet};

/// What of a child its parent keeps an index of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kin {
    group: Pid,
    is_living: bool,
    kind: Kind,
    news: Option<News>,
}

/// Which signal a child sends at its end, as far as wait tells (__WCLONE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// SIGCHLD.
    Usual,
    /// Another, or none.
    Clone,
}

/// What wait can report of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Ended,
    Stopped,
    Continued,
}

impl Kin {
    /// That of a child which stands so.
    pub(super) fn of(standing: &Standing) -> Kin {
        let news = match (standing.phase, standing.unreported, standing.stop) {
            (Phase::Zombie(_), ..) => Some(News::Ended),
            (_, Some(ChildEvent::Stopped(_)), Stop::Stopped(_)) => Some(News::Stopped),
            (_, Some(ChildEvent::Continued), _) => Some(News::Continued),
            _ => None,
        };
        let kind = if standing.exit_signal == Some(Signal::CHLD) { Kind::Usual } else { Kind::Clone };
        Kin { group: standing.group, is_living: standing.is_living(), kind, news }
    }
}

/// How many children of each kind there are, zombies included, and how many live.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    usual: usize,
    clones: usize,
    living: usize,
}

impl Count {
    fn add(&mut self, kin: Kin, by: isize) {
        let of_kind = match kin.kind {
            Kind::Usual => &mut self.usual,
            Kind::Clone => &mut self.clones,
        };
        *of_kind = of_kind.saturating_add_signed(by);
        self.living = self.living.saturating_add_signed(isize::from(kin.is_living) * by);
    }

    fn is_none(&self) -> bool {
        self.usual == 0 && self.clones == 0
    }

    fn any(&self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| match kind {
            Kind::Usual => self.usual > 0,
            Kind::Clone => self.clones > 0,
        })
    }
}

/// Something to report of a child: `None` and then its group, so that those of a group and those of all are found.
type Report = (Option<Pid>, Kind, News, Pid);

/// All children of a process.
#[derive(Debug, Default)]
pub(super) struct Children {
    all: BTreeMap<Pid, Kin>,
    count: Count,
    by_group: BTreeMap<Pid, Count>,
    reports: BTreeSet<Report>,
}

impl Children {
    /// Their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = Pid> + '_ {
        self.all.keys().copied()
    }

    /// The one with the lowest id.
    pub(super) fn first(&self) -> Option<Pid> {
        self.all.first_key_value().map(|(pid, _)| *pid)
    }

    /// Adds one.
    pub(super) fn insert(&mut self, pid: Pid, kin: Kin) {
        self.all.insert(pid, kin);
        self.count.add(kin, 1);
        self.by_group.entry(kin.group).or_default().add(kin, 1);
        if let Some(news) = kin.news {
            self.reports.extend([None, Some(kin.group)].map(|group| (group, kin.kind, news, pid)));
        }
    }

    /// Takes out one that stands as when it was added.
    pub(super) fn remove(&mut self, pid: Pid, kin: Kin) {
        self.all.remove(&pid);
        self.count.add(kin, -1);
        if let Some(count) = self.by_group.get_mut(&kin.group) {
            count.add(kin, -1);
            if count.is_none() {
                self.by_group.remove(&kin.group);
            }
        }
        if let Some(news) = kin.news {
            for group in [None, Some(kin.group)] {
                self.reports.remove(&(group, kin.kind, news, pid));
            }
        }
    }

    /// How many in `group` live.
    pub(super) fn living_in(&self, group: Pid) -> usize {
        self.by_group.get(&group).map_or(0, |count| count.living)
    }

    /// The groups of those that live, and how many there are in each.
    pub(super) fn living_groups(&self) -> impl Iterator<Item = (Pid, usize)> + '_ {
        self.by_group.iter().map(|(group, count)| (*group, count.living)).filter(|(_, living)| *living > 0)
    }

    /// Whether wait can ever report any of `which`.
    pub(super) fn is_eligible(&self, which: WaitFor, options: WaitOptions) -> bool {
        let kinds = kinds(options);
        match which {
            WaitFor::Any => self.count.any(kinds),
            WaitFor::Group(group) => self.by_group.get(&group).is_some_and(|count| count.any(kinds)),
            WaitFor::Process(pid) => self.all.get(&pid).is_some_and(|kin| kinds.contains(&kin.kind)),
        }
    }

    /// The one of `which` with the lowest id that has something to report now.
    pub(super) fn with_news(&self, which: WaitFor, options: WaitOptions) -> Option<Pid> {
        let wanted = [
            (options.ended, News::Ended),
            (options.stopped, News::Stopped),
            (options.continued, News::Continued),
        ];
        let wanted = wanted.into_iter().filter_map(|(wanted, news)| wanted.then_some(news));
        let group = match which {
            WaitFor::Any => None,
            WaitFor::Group(group) => Some(group),
            WaitFor::Process(pid) => {
                let kin = self.all.get(&pid).filter(|kin| kinds(options).contains(&kin.kind))?;
                return wanted.into_iter().any(|news| kin.news == Some(news)).then_some(pid);
            }
        };
        let first = |kind, news| {
            let found = self.reports.range((group, kind, news, Pid::INIT)..).next().copied();
            found.filter(|found| (found.0, found.1, found.2) == (group, kind, news)).map(|found| found.3)
        };
        wanted.flat_map(|news| kinds(options).iter().filter_map(move |kind| first(*kind, news))).min()
    }
}

/// The kinds of children that wait looks at.
fn kinds(options: WaitOptions) -> &'static [Kind] {
    match (options.all_kinds, options.only_clones) {
        (true, _) => &[Kind::Usual, Kind::Clone],
        (false, false) => &[Kind::Usual],
        (false, true) => &[Kind::Clone],
    }
}
