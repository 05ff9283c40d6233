//! Which processes go first while programs wait for a processor: those that have used it little
//! lately, or waited for it little.
//!
//! What a process uses decays ([`RecentUse`]); it lowers the process by levels, down to
//! [`BOTTOM`], where all have equal turns. Time in which a process could run counts as used, also
//! if other programs had the processor: among hundreds that compute, each gets so little that its
//! time alone would never tell it from one that has slept. A new process begins with the use of the
//! one that made it, and a process for which its parent waits leaves its use to it, so that nothing
//! is gained by making processes.
//!
//! While there is a processor for each thread, no priority changes, and processor time is read once
//! a second.

use super::{Pid, Process, RunState, Table};
use alloc::vec::Vec;
use core::time::Duration;
use mach::thread::RecentUse;

/// The level of processes that have used much. A process that could run for about half of the last
/// seconds is there.
pub const BOTTOM: u8 = 10;
/// How often levels are computed while threads wait for a processor, and how often the use is read
/// otherwise.
const SAMPLE: Duration = Duration::from_millis(100);
const READING: Duration = Duration::from_secs(1);
/// After so many samples in which no thread waited, all processes have equal priority again.
const CALM: u8 = 10;
/// From one of so many samples to the next one all processes are at the bottom, whatever they have
/// used, so that those there get some time in any case. Those that sleep at the sample are there,
/// too: programs that take short turns wake after it.
const RESERVE: u8 = 8;

/// What one process has used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    recent: RecentUse,
    /// The microseconds that were counted as used since the start.
    counted: u64,
    /// The processor time of the process at the last reading.
    seen: Duration,
    /// When it was last read.
    at: Duration,
    /// The level for which the machine has been told the priorities of the threads.
    level: u8,
}

impl Share {
    /// The share of a process that starts at `now`.
    pub(super) fn starting(now: Duration) -> Share {
        Share {
            recent: RecentUse::starting(microseconds(now), 0),
            counted: 0,
            seen: Duration::ZERO,
            at: now,
            level: 0,
        }
    }

    /// The share of a process that this one makes at `now`.
    pub(super) fn inherited(&self, now: Duration) -> Share {
        Share { recent: self.recent.inherited(), counted: 0, seen: Duration::ZERO, at: now, ..*self }
    }

    /// The level by which the priority is lowered now.
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    /// Counts what was used until `now`: `time` is all processor time of the process. If it
    /// `competes`, it could run, and all time since the last reading counts.
    fn count(&mut self, now: Duration, time: Duration, competes: bool) {
        let used = time.saturating_sub(self.seen);
        let passed = now.saturating_sub(self.at);
        self.counted += microseconds(if competes { used.max(passed) } else { used });
        (self.seen, self.at) = (time, now);
        self.recent.age(microseconds(now), self.counted);
    }

    /// The level for what was used.
    fn deserved(&self) -> u8 {
        self.recent.level(0).min(BOTTOM)
    }
}

fn microseconds(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// Whether threads wait for a processor, as the samples have shown it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contention {
    /// Whether levels count at present.
    levels_count: bool,
    /// In how many samples, in a row, no thread waited.
    calm: u8,
    /// The number of the sample, up to [`RESERVE`].
    turn: u8,
}

impl Contention {
    /// Takes a sample, in which some thread `waits`, or none does.
    fn sample(&mut self, waits: bool) {
        self.calm = if waits { 0 } else { self.calm.saturating_add(1) };
        self.levels_count = waits || self.levels_count && self.calm < CALM;
        self.turn = (self.turn + 1) % RESERVE;
    }

    /// The level of a process with the share `share`.
    fn level(&self, share: &Share) -> u8 {
        match (self.levels_count, self.turn == 0) {
            (false, _) => 0,
            (true, true) => BOTTOM,
            (true, false) => share.deserved(),
        }
    }
}

impl Table {
    /// Counts what each process has used until `now`, and computes its level. Returns the threads
    /// that the machine must be told a new priority for.
    pub fn share_processors(&mut self, now: Duration, processors: usize) -> Vec<Pid> {
        let levels_counted = self.contention.levels_count;
        self.contention.sample(self.thread_counts().1 > processors);
        let mut changed = Vec::new();
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        for pid in pids {
            let Some(process) = self.processes.get(&pid) else { continue };
            let competes = levels_counted && self.runs(process);
            let time = self.time(process);
            let contention = self.contention;
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            process.share.count(now, time, competes);
            let level = contention.level(&process.share);
            if level != process.share.level {
                process.share.level = level;
                changed.extend(process.threads());
            }
        }
        changed
    }

    /// How long after the last call of [`share_processors`](Self::share_processors) it has to be
    /// called again.
    pub fn until_next_sharing(&self) -> Duration {
        if self.contention.levels_count { SAMPLE } else { READING }
    }

    /// The share of a process that process `of` makes at `now`. While threads wait for processors,
    /// the last sample may be older than the processes of a chain of forks, so the time since then
    /// is counted now. The process runs, since it makes another.
    pub(super) fn share_of_child(&mut self, of: Pid, now: Duration) -> Share {
        let time = self.processes.get(&of).filter(|_| self.contention.levels_count).map(|p| self.time(p));
        let Some(process) = self.processes.get_mut(&of) else { return Share::starting(now) };
        if let Some(time) = time {
            process.share.count(now, time, true);
        }
        process.share.inherited(now)
    }

    /// Process `parent` has waited for a child that ended with the share `ended` and has used
    /// `time` in all. A process that gets orphans, which others have made, is not blamed for them.
    pub(super) fn leave_share(&mut self, parent: Pid, mut ended: Share, time: Duration) {
        let adopts = |process: &Process| process.pid == Pid::INIT || process.is_subreaper;
        if let Some(parent) = self.processes.get_mut(&parent).filter(|parent| !adopts(parent)) {
            ended.count(ended.at, time, false);
            parent.share.recent.raise_to(&ended.recent);
        }
    }

    /// Whether a thread of the process runs or could run.
    fn runs(&self, process: &Process) -> bool {
        let threads = process.threads.iter().filter_map(|tid| self.threads.get(tid));
        threads.into_iter().any(|thread| thread.run_state() == RunState::Running)
    }

    /// All processor time that the process has used.
    fn time(&self, process: &Process) -> Duration {
        let usage = self.usage(process);
        usage.user_time + usage.system_time
    }
}
