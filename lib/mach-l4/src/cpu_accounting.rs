//! CPU-time accounting by a worker, and how the worker leaves time to programs.
//!
//! A worker runs at a higher priority than the programs that it serves. So the time while it waits
//! for a message belongs to programs. The time until it waits again belongs to the server; it is
//! charged to the sender of the message. Usually the sender is the program that ran during the
//! wait. After a long wait without messages, the kernel has given the runnable threads of the
//! highest priority their timeslices in turn, so they share the time. With several processors the
//! sender may have run on another one, and other workers read the times while this worker waits:
//! then [`placement`](crate::placement) keeps the accounts of programs, and workers tell it when
//! they wait.
//!
//! A worker sleeps only when it has nothing to do. So a request that takes long (a big transfer)
//! would keep all programs from running. The worker therefore owes programs a part of the time for
//! which it has been busy, and pays it by short waits.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use l4::thread::system_clock;
use l4::x2::ThreadId;

use crate::kernel::time_stamp;
use crate::machine::Shared;
use crate::thread_table::Ticks;
use crate::user_thread::Record;

/// A wait of more ticks than this is shared by all threads that run: it lasts some timeslices, at
/// any clock rate.
const LONG: u64 = 20_000_000;
/// A thread that has used more ticks than this is charged at its next message, since it may be
/// looking at its own clock.
const SOON: u64 = 100_000;
/// Waits that timers end are shared out together when they come to more ticks than this: a program
/// that makes no call gets its processor time in such pieces, while a timer looks at it.
const PIECE: u64 = 4_000_000;
/// The most threads among which time is shared out. The next ones get the next time.
const SHARERS: usize = 64;
/// Programs get one part in so many of the time for which the worker is busy with long requests.
const PART: u64 = 4;
/// How many microseconds programs get at a time, at least and at most.
const LEAST: u64 = 1000;
const MOST: u64 = 5000;

/// The CPU-time accounting of one worker.
pub(crate) struct CpuAccounting {
    /// The number of the worker.
    worker: usize,
    /// The time stamp up to which all time has been charged, except the ticks in `in_server` and
    /// `in_program`.
    since: u64,
    /// The last sender, and the ticks for which the worker has worked for it that are not charged
    /// yet.
    served: ThreadId,
    in_server: u64,
    /// Ticks of the last sender's program that are not charged yet.
    in_program: u64,
    /// Ticks of waits that no message of a program has ended, and that are not shared out yet.
    unshared: u64,
    /// The place in the table of threads at which the next search for threads that run begins.
    cursor: usize,
    /// Since when the worker has been busy without a sleep, in microseconds (0: it is not), and how
    /// many microseconds it owes programs for that.
    busy_since: u64,
    owed: u64,
}

impl CpuAccounting {
    pub(crate) fn new(worker: usize) -> CpuAccounting {
        CpuAccounting {
            worker,
            since: time_stamp(),
            served: ThreadId::NIL,
            in_server: 0,
            in_program: 0,
            unshared: 0,
            cursor: 0,
            busy_since: 0,
            owed: 0,
        }
    }

    /// Called when the worker is about to wait for a message.
    #[inline]
    pub(crate) fn waits(&mut self) {
        let now = time_stamp();
        self.in_server += now.wrapping_sub(self.since);
        self.since = now;
    }

    /// Accounts for a message that has come. Returns the sender's record if the sender is a thread
    /// of a program.
    #[inline]
    pub(crate) fn received(&mut self, shared: &Shared, from: ThreadId) -> Option<Arc<Record>> {
        let passed = self.passed();
        let several = self.report_to_placement(shared);
        let share = passed > LONG && !several;
        let record = {
            let mut threads = shared.threads.lock();
            let mut of_sender = Ticks { program: if share || several { 0 } else { passed }, server: 0 };
            let of_served = Ticks { program: self.in_program, server: self.in_server };
            if self.served == from {
                of_sender.program += of_served.program;
                of_sender.server = of_served.server;
            } else {
                threads.charge(self.served, of_served);
            }
            let record = threads.find_and_charge(from, of_sender).filter(|_| from.is_global());
            record.and_then(alloc::sync::Weak::upgrade)
        };
        (self.served, self.in_server, self.in_program) = (from, 0, 0);
        if share {
            self.share(shared, passed, Some(from));
        }
        record.filter(|record| record.id == from)
    }

    /// Accounts for another message of the last sender: its time is charged later. Returns false if
    /// so much time has come together that it must be charged now.
    #[inline]
    pub(crate) fn received_again(&mut self) -> bool {
        let now = time_stamp();
        let passed = now.wrapping_sub(self.since);
        if self.in_program + self.in_server + passed > SOON {
            return false;
        }
        self.since = now;
        self.in_program += passed;
        true
    }

    /// Charges the last sender its time up to now, if the next message is expected of another
    /// thread, which then counts as the last sender.
    #[inline]
    pub(crate) fn turns_to(&mut self, shared: &Shared, thread: ThreadId) {
        if self.served != thread {
            self.waits();
            self.charge(shared);
            self.served = thread;
        }
    }

    /// Charges the last sender the time that was to be charged later.
    pub(crate) fn charge(&mut self, shared: &Shared) {
        let program = core::mem::take(&mut self.in_program);
        let server = core::mem::take(&mut self.in_server);
        shared.threads.lock().charge(self.served, Ticks { program, server });
    }

    /// Accounts for a wait that ended without a message of a program.
    pub(crate) fn interrupted(&mut self, shared: &Shared) {
        let passed = self.passed();
        if !self.report_to_placement(shared) {
            self.unshared += passed;
            if self.unshared > PIECE {
                let passed = core::mem::take(&mut self.unshared);
                self.share(shared, passed, None);
            }
        }
        self.charge(shared);
        self.served = ThreadId::NIL;
    }

    /// Called when the worker is about to wait. With several processors it also records that the
    /// worker's processor is free for programs.
    #[inline]
    pub(crate) fn idles(&mut self, shared: &Shared) {
        self.waits();
        if shared.placement.is_some() {
            shared.idle[self.worker].begin(self.since);
        }
    }

    /// With several processors, records that the worker's wait has ended, and for how long the
    /// worker had worked before the wait.
    #[inline]
    fn report_to_placement(&self, shared: &Shared) -> bool {
        let Some(placement) = &shared.placement else { return false };
        shared.idle[self.worker].end(self.since);
        if shared.has_distant {
            placement.lock().work(self.worker, self.served, self.in_server, self.since);
        }
        true
    }

    fn passed(&mut self) -> u64 {
        let now = time_stamp();
        let passed = now.wrapping_sub(self.since);
        self.since = now;
        passed
    }

    /// Shares `passed` ticks among the threads that run, or have run until they sent as `sender`
    /// did: those of the highest priority.
    fn share(&mut self, shared: &Shared, passed: u64, sender: Option<ThreadId>) {
        let mut running = [ThreadId::NIL; SHARERS];
        let (mut count, mut highest) = (0, 0);
        let places = shared.threads.lock().places();
        let start = self.cursor;
        for first in (0..places).step_by(SHARERS) {
            // Dropping the last reference to a record takes the table's lock, so the records are
            // looked at after the lock is released.
            let mut some: [Option<Arc<Record>>; SHARERS] = [const { None }; SHARERS];
            {
                let threads = shared.threads.lock();
                for (offset, slot) in (first..places).zip(&mut some) {
                    *slot = threads.record((start + offset) % places);
                }
            }
            for (offset, record) in (first..).zip(some) {
                let Some(record) = record else { continue };
                let priority = record.priority();
                if priority < highest || !(record.runs() || Some(record.id) == sender) {
                    continue;
                }
                if priority > highest {
                    (count, highest) = (0, priority);
                }
                if count < SHARERS {
                    running[count] = record.id;
                    count += 1;
                    self.cursor = (start + offset + 1) % places;
                }
            }
        }
        let program = passed / count.max(1) as u64;
        let mut threads = shared.threads.lock();
        for thread in &running[..count] {
            threads.charge(*thread, Ticks { program, server: 0 });
        }
    }

    /// Called when the worker has nothing to do: it owes programs nothing.
    #[inline]
    pub(crate) fn sleeps(&mut self) {
        (self.busy_since, self.owed) = (0, 0);
    }

    /// Called when the worker has more to do. Returns for how many microseconds it lets programs
    /// run first; 0 if they are owed too little or no program could use the time.
    pub(crate) fn is_busy(&mut self, shared: &Shared) -> u64 {
        let programs = match &shared.placement {
            None => shared.running.load(Ordering::Relaxed),
            Some(placement) => placement.lock().threads_on(self.worker),
        };
        if programs == 0 {
            self.sleeps();
            return 0;
        }
        let now = system_clock();
        if self.busy_since != 0 {
            self.owed += now.saturating_sub(self.busy_since) / PART;
        }
        self.busy_since = now;
        if self.owed < LEAST { 0 } else { self.owed.min(MOST) }
    }

    /// Records that the worker has let programs run, for `time` microseconds at most.
    pub(crate) fn gave(&mut self, time: u64) {
        if time > 0 {
            let now = system_clock();
            self.owed = self.owed.saturating_sub(now.saturating_sub(self.busy_since));
            self.busy_since = now;
        }
    }
}
