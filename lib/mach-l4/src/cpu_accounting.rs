//! CPU-time accounting by a worker, and how it leaves time to the programs.
//!
//! A worker runs at a higher priority than the programs that it serves. So what passes while it
//! waits for a message is the time of programs, and what passes until it waits again is its own, on
//! behalf of the sender of the message. Usually the sender has run just before; where a long time
//! has passed without messages, the kernel has let all threads that run have their timeslices in
//! turn, and they share it. With several processors messages do not say which threads have run
//! here, and others ask while the worker waits: then [`placement`](crate::placement) keeps the
//! accounts of programs, from what workers say of their waits.
//!
//! A request that keeps the worker busy (a long transfer) would keep all programs from running, as
//! the worker sleeps only when there is nothing to do. It therefore owes them a part of the time
//! for which it has been busy.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use l4::thread::system_clock;
use l4::x2::ThreadId;

use crate::kernel::time_stamp;
use crate::machine::Shared;
use crate::thread_table::Ticks;
use crate::user_thread::Record;

/// Ticks without a message after which the threads that run share the time: some timeslices,
/// whatever the processor's speed.
const LONG: u64 = 20_000_000;
/// Ticks after which the time of a thread is charged at its next message: it may be looking at its
/// own clock.
const SOON: u64 = 100_000;
/// The most threads among which time is shared out.
const SHARERS: usize = 64;
/// One part in so many of the time for which the worker is busy with long requests belongs to
/// programs.
const PART: u64 = 4;
/// Microseconds that programs get at a time, at least and at most.
const LEAST: u64 = 1000;
const MOST: u64 = 5000;

/// One worker's clock.
pub(crate) struct CpuAccounting {
    /// Which worker it is.
    worker: usize,
    /// Time stamp up to which all time is charged, but what `in_server` says.
    since: u64,
    /// The last sender, and ticks that its worker has been at work for it.
    served: ThreadId,
    in_server: u64,
    /// Ticks of the last sender's program that are not charged to it yet.
    in_program: u64,
    /// Since when the worker is busy without a sleep (microseconds; 0: it is not), and what it owes
    /// programs for that.
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

    /// A message has come: its sender's record, if it is a thread of a program.
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

    /// A message of the last sender has come, which counts as usual later. False: too much has come
    /// together, it counts now.
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

    /// What was to count later counts now.
    pub(crate) fn charge(&mut self, shared: &Shared) {
        let program = core::mem::take(&mut self.in_program);
        let server = core::mem::take(&mut self.in_server);
        shared.threads.lock().charge(self.served, Ticks { program, server });
    }

    /// The wait has ended without a message of a program's.
    pub(crate) fn interrupted(&mut self, shared: &Shared) {
        let passed = self.passed();
        if !self.report_to_placement(shared) && passed > LONG {
            self.share(shared, passed, None);
        }
        self.charge(shared);
        self.served = ThreadId::NIL;
    }

    /// The worker is about to wait, with several processors: then its processor is there for
    /// programs.
    #[inline]
    pub(crate) fn idles(&mut self, shared: &Shared) {
        self.waits();
        if shared.placement.is_some() {
            shared.idle[self.worker].begin(self.since);
        }
    }

    /// With several processors: says that the worker's wait has ended, and for how long it has
    /// worked before.
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

    /// Charges time to all that run, and to `sender`, which has run until now.
    fn share(&self, shared: &Shared, passed: u64, sender: Option<ThreadId>) {
        // They are dropped after the table's lock: the last reference to one needs it.
        let mut running: [Option<Arc<Record>>; SHARERS] = [const { None }; SHARERS];
        let mut count = 0;
        let mut threads = shared.threads.lock();
        for record in threads.records().filter_map(alloc::sync::Weak::upgrade) {
            if count < SHARERS && (record.runs() || Some(record.id) == sender) {
                running[count] = Some(record);
                count += 1;
            }
        }
        let program = passed / count.max(1) as u64;
        for record in running.iter().flatten() {
            threads.charge(record.id, Ticks { program, server: 0 });
        }
        drop(threads);
    }

    /// Called when the worker has nothing to do.
    #[inline]
    pub(crate) fn sleeps(&mut self) {
        (self.busy_since, self.owed) = (0, 0);
    }

    /// The worker has more to do: how many microseconds it lets programs run first.
    /// None if no program could use them.
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

    /// It has let them run, for this time at most.
    pub(crate) fn gave(&mut self, time: u64) {
        if time > 0 {
            let now = system_clock();
            self.owed = self.owed.saturating_sub(now.saturating_sub(self.busy_since));
            self.busy_since = now;
        }
    }
}
