//! CPU placement: on which processor each thread of a program runs, and how much processor time it
//! has used.
//!
//! Programs run on all processors, workers on the first ones: usually on all, too. A thread's
//! messages go to the worker of its processor or, if that has none, to the worker of another.
//! Before the server answers a thread, it may give the thread another processor. As the thread
//! waits for its answer anyway, this costs a call of the kernel or two and no interrupt. The
//! processor is chosen by these rules:
//!
//! - A thread stays where it is, if no other program runs there.
//! - Otherwise it goes to a processor where no program runs, or, not more often than every few
//!   milliseconds, to one where fewer programs run.
//! - A thread on a processor without a worker may make system calls in quick succession. It then
//!   goes to its worker's processor if no program runs there, because its calls are local there.
//! - When a worker is about to sleep and a processor has two threads more than another, the worker
//!   *pulls* one: it recalls the thread, which gets its new processor when its message comes. If
//!   the difference is one, and all processors have something to do, a worker pulls a thread ten
//!   times a second, so that each thread has its turn on the processor with fewer threads.
//! - A worker that is busy for threads of other processors counts as a thread on its own.
//! - When a thread looks for another processor, a worker at work there counts as a thread, too: the
//!   thread that it works for will continue there. Without this rule, threads that do little more
//!   than make system calls would move all the time, since each processor mostly runs no program.
//!
//! How many threads run on a processor is known, because the server knows which threads run their
//! programs and which wait for an answer. The time that each thread has used follows from that:
//! threads that run at the same time share their processor's time equally, as the kernel divides
//! it. On a worker's processor, the time that they share is the time for which the worker waits.

use alloc::boxed::Box;
use alloc::vec::Vec;

use l4::x2::ThreadId;
use rt::executor::OutOfMemory;

use crate::idle_time::IdleTime;

/// The most processors that can be handled: a set of processors is a mask of 64 bits.
pub(crate) const MOST: usize = 64;

/// For so many ticks of the time-stamp counter a thread stays on the processor to which it was
/// moved last, unless another processor has nothing to do: some milliseconds, at any clock rate.
const REST: u64 = 10_000_000;
/// A run of the program between two messages is short if it takes fewer ticks than this. After so
/// many short runs in a row a thread counts as one that mainly makes system calls.
const SHORT: u64 = 400_000;
const CALLS: u8 = 16;
/// The length in ticks of the window in which it is measured how busy a worker is.
const WINDOW: u64 = 4_000_000;
/// After so many ticks a thread that was pulled is not expected any more.
const PATIENCE: u64 = 50_000_000;
/// Microseconds between two attempts to balance the processors.
const TURN: u64 = 100_000;

/// The worker to which the messages of a processor's threads go, if there are `workers` of them.
/// Worker n runs on processor n.
pub(crate) fn worker_of(processor: usize, workers: usize) -> usize {
    processor % workers
}

/// A moment, by the clocks of all processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    /// The time-stamp counter.
    pub(crate) stamp: u64,
    /// For each worker, the time for which its processor was free for programs.
    pub(crate) idle: &'a [IdleTime],
}

impl Moment<'_> {
    /// The ticks for which a processor was free for programs.
    fn programs(&self, processor: usize) -> u64 {
        self.idle.get(processor).map_or(self.stamp, |idle| idle.until(self.stamp))
    }

    /// Whether a processor has a worker that is working.
    fn has_work(&self, processor: usize) -> bool {
        self.idle.get(processor).is_some_and(|idle| !idle.waits())
    }
}

/// The state of a processor.
#[derive(Clone, Copy, Default)]
struct Processor {
    /// How many threads run their programs on the processor.
    threads: usize,
    /// The ticks that a thread would have had since the start, if it had always run on this
    /// processor with the other threads.
    clock: u64,
    /// Ticks for which programs used the processor.
    used: u64,
    /// The time, in ticks for which the processor was free, up to which `clock` and `used` are
    /// counted.
    at: u64,
}

/// The entry of a thread in the table that is indexed by thread number.
#[derive(Clone, Copy)]
struct Entry {
    thread: ThreadId,
    /// The processor to which the thread is assigned; `None` if none was chosen yet.
    processor: Option<usize>,
    allowed: u64,
    runs: bool,
}

const UNUSED: Entry = Entry { thread: ThreadId::NIL, processor: None, allowed: u64::MAX, runs: false };

/// A thread that was recalled so that it can be moved.
#[derive(Clone, Copy)]
struct Pull {
    thread: ThreadId,
    to: usize,
    at: u64,
}

/// How busy a worker is for threads of other processors.
#[derive(Clone, Copy, Default)]
struct Work {
    /// Whether the worker was busy in the last window, when the present window began, and for how
    /// many ticks of it the worker was busy.
    busy: bool,
    window: u64,
    worked: u64,
}

/// The result of a look at the load by a worker that is about to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The load is balanced.
    Balanced,
    /// The worker has to recall this thread, so that it can be moved.
    Pull(ThreadId),
    /// The worker has to look again after so many microseconds.
    Later(u64),
}

/// The load of all processors, and the assignment of threads to them.
pub(crate) struct Placement {
    processors: Box<[Processor]>,
    /// For each worker, how busy it is for threads of other processors.
    work: Box<[Work]>,
    /// The thread number of the first entry.
    first: u32,
    entries: Vec<Entry>,
    /// The index of the entry at which the next search for a thread to pull begins.
    cursor: usize,
    pull: Option<Pull>,
    /// The time in microseconds at which a thread was last pulled for a difference of one.
    turned: u64,
}

impl Placement {
    /// A table for so many processors and workers, and for threads whose numbers begin at `first`.
    pub(crate) fn new(processors: usize, workers: usize, first: u32) -> Placement {
        let count = processors.clamp(1, MOST);
        Placement {
            processors: (0..count).map(|_| Processor::default()).collect(),
            work: (0..workers.clamp(1, count)).map(|_| Work::default()).collect(),
            first,
            entries: Vec::new(),
            cursor: 0,
            pull: None,
            turned: 0,
        }
    }

    /// How many processors there are.
    pub(crate) fn processors(&self) -> usize {
        self.processors.len()
    }

    /// The mask of all processors.
    pub(crate) fn all(&self) -> u64 {
        u64::MAX >> (MOST - self.processors.len())
    }

    /// How many threads run their programs on a processor.
    pub(crate) fn threads_on(&self, processor: usize) -> usize {
        self.processors.get(processor).map_or(0, |processor| processor.threads)
    }

    /// The ticks for which programs have used a processor.
    pub(crate) fn used_by_programs(&mut self, processor: usize, now: Moment<'_>) -> u64 {
        self.advance(processor, now).used
    }

    /// Whether there are processors without a worker.
    pub(crate) fn has_distant(&self) -> bool {
        self.work.len() < self.processors.len()
    }

    /// Enters a thread into the table. If `lived`, an earlier entry of this thread number says on
    /// which processor the kernel has it. Until a processor is chosen for the thread, it counts as
    /// one of processor `near`.
    ///
    /// # Errors
    /// There is no memory for the thread's entry.
    pub(crate) fn enter(
        &mut self,
        thread: ThreadId,
        lived: bool,
        near: usize,
    ) -> Result<Assignment, OutOfMemory> {
        let place = thread.number().checked_sub(self.first).ok_or(OutOfMemory)? as usize;
        if place >= self.entries.len() {
            self.entries.try_reserve(place + 1 - self.entries.len()).map_err(|_| OutOfMemory)?;
            self.entries.resize(place + 1, UNUSED);
        }
        let known = self.entries[place].processor.filter(|_| lived);
        self.entries[place] = Entry { thread, processor: known, allowed: self.all(), runs: false };
        let processor = if near < self.processors.len() { near } else { 0 };
        Ok(Assignment { place, processor, known, allowed: self.all(), ..Assignment::default() })
    }

    /// Records that a worker has worked for a thread for `ticks` ticks, until `now`.
    pub(crate) fn work(&mut self, worker: usize, thread: ThreadId, ticks: u64, now: u64) {
        let place = thread.number().wrapping_sub(self.first) as usize;
        let Some(work) = self.work.get_mut(worker) else { return };
        let is_distant = |entry: &Entry| {
            entry.thread == thread && entry.processor.is_some_and(|processor| processor != worker)
        };
        if self.entries.get(place).is_some_and(is_distant) {
            work.worked += ticks;
        }
        let window = now.wrapping_sub(work.window);
        if window >= WINDOW {
            *work = Work { busy: work.worked > window / 2, window: now, worked: 0 };
        }
    }

    /// Balances the load when a worker is about to sleep, at `time` microseconds.
    pub(crate) fn look(&mut self, now: Moment<'_>, time: u64) -> Look {
        // Mostly there are no threads to move: no processor has two, and no worker is busy.
        if self.processors.iter().all(|processor| processor.threads < 2)
            && self.work.iter().all(|work| !work.busy)
        {
            return Look::Balanced;
        }
        let count = self.processors.len();
        let loads = || (0..count).map(|processor| (self.load(processor), processor));
        let Some(least) = loads().min() else { return Look::Balanced };
        let from = loads().filter(|&(_, processor)| self.processors[processor].threads > 0).max();
        let Some(most) = from.filter(|most| most.0 > least.0) else { return Look::Balanced };
        if let Some(pull) = self.pull
            && now.stamp.wrapping_sub(pull.at) < PATIENCE
        {
            return Look::Later(TURN);
        }
        if most.0 == least.0 + 1 {
            if most.0 == 1 || least.0 == 0 {
                // A thread that runs alone cannot get more time by moving.
                return Look::Balanced;
            }
            let since = time.saturating_sub(self.turned);
            if since < TURN {
                return Look::Later(TURN - since);
            }
            self.turned = time;
        }
        match self.find(most.1, least.1) {
            None => Look::Later(TURN),
            Some(thread) => {
                self.pull = Some(Pull { thread, to: least.1, at: now.stamp });
                Look::Pull(thread)
            }
        }
    }

    /// Finds a thread that runs on processor `from` and is allowed to run on `to`.
    fn find(&mut self, from: usize, to: usize) -> Option<ThreadId> {
        let count = self.entries.len();
        let places = (0..count).map(|offset| (self.cursor + offset) % count);
        let fits = |place: &usize| {
            let entry = &self.entries[*place];
            entry.runs && entry.processor == Some(from) && entry.allowed & 1 << to != 0
        };
        let place = places.into_iter().find(fits)?;
        self.cursor = (place + 1) % count;
        Some(self.entries[place].thread)
    }

    /// The load of a processor: its threads that run programs, and one if its worker is busy.
    fn load(&self, processor: usize) -> usize {
        self.processors[processor].threads
            + usize::from(self.work.get(processor).is_some_and(|work| work.busy))
    }

    /// Advances a processor's clock to `now`.
    fn advance(&mut self, processor: usize, now: Moment<'_>) -> &mut Processor {
        let time = now.programs(processor);
        let processor = &mut self.processors[processor];
        if processor.threads > 0 {
            let passed = time.saturating_sub(processor.at);
            processor.used += passed;
            processor.clock += passed / processor.threads as u64;
        }
        processor.at = processor.at.max(time);
        processor
    }
}

/// The assignment of a thread to a processor, and the time that it has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Assignment {
    place: usize,
    /// The processor to which the thread is assigned.
    processor: usize,
    /// The processor on which the kernel has the thread, if that is known.
    known: Option<usize>,
    /// The mask of processors on which the thread may run.
    allowed: u64,
    /// Whether the thread runs its program, and its processor's clock when it began to.
    runs: bool,
    since: u64,
    /// The ticks that the thread has used before its present run.
    used: u64,
    /// How many of its last runs, in a row, were short.
    short: u8,
    /// The time stamp at which the thread was assigned to this processor.
    moved: u64,
}

impl Assignment {
    /// The processor to which the thread is assigned.
    pub(crate) fn processor(&self) -> usize {
        self.processor
    }

    /// The mask of processors on which the thread may run.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Sets the mask, which must not be empty. Returns true if the thread has to move.
    pub(crate) fn allow(&mut self, placement: &mut Placement, mask: u64) -> bool {
        self.allowed = mask;
        placement.entries[self.place].allowed = mask;
        mask & 1 << self.processor == 0
    }

    /// Records that the thread resumes its program.
    pub(crate) fn begin(&mut self, placement: &mut Placement, now: Moment<'_>) {
        let processor = placement.advance(self.processor, now);
        processor.threads += 1;
        self.since = processor.clock;
        self.runs = true;
        placement.entries[self.place].runs = true;
    }

    /// Records that the thread has left its program.
    pub(crate) fn end(&mut self, placement: &mut Placement, now: Moment<'_>) {
        if !self.runs {
            return;
        }
        let processor = placement.advance(self.processor, now);
        processor.threads -= 1;
        let had = processor.clock - self.since;
        self.used += had;
        self.short = if had < SHORT { self.short.saturating_add(1) } else { 0 };
        self.runs = false;
        placement.entries[self.place].runs = false;
    }

    /// The ticks that the thread has used.
    pub(crate) fn used(&self, placement: &mut Placement, now: Moment<'_>) -> u64 {
        self.used + if self.runs { placement.advance(self.processor, now).clock - self.since } else { 0 }
    }

    /// Chooses the processor of this thread, which must not be running its program. Returns the
    /// processor if the thread has to be moved there by the kernel.
    pub(crate) fn settle(&mut self, placement: &mut Placement, now: Moment<'_>) -> Option<usize> {
        let to = self.choose(placement, now);
        if to != self.processor {
            (self.processor, self.moved) = (to, now.stamp);
        }
        if self.known == Some(to) {
            return None;
        }
        self.known = Some(to);
        placement.entries[self.place].processor = Some(to);
        Some(to)
    }

    fn choose(&mut self, placement: &mut Placement, now: Moment<'_>) -> usize {
        let may = |processor: usize| self.allowed & 1 << processor != 0;
        let thread = placement.entries[self.place].thread;
        if let Some(pull) = placement.pull.take_if(|pull| pull.thread == thread)
            && may(pull.to)
        {
            return pull.to;
        }
        let rested = now.stamp.wrapping_sub(self.moved) >= REST;
        if may(self.processor) && placement.load(self.processor) == 0 {
            let near = worker_of(self.processor, placement.work.len());
            let nearer = self.short >= CALLS && rested && may(near) && placement.threads_on(near) == 0;
            return if nearer { near } else { self.processor };
        }
        // On the thread's own processor the worker is not counted, because it is working for this
        // thread.
        let load = |processor| {
            placement.load(processor) + usize::from(processor != self.processor && now.has_work(processor))
        };
        let candidates = (0..placement.processors.len()).filter(|&processor| may(processor));
        let best = candidates
            .map(|processor| (load(processor), processor))
            .min_by_key(|&(load, processor)| (load, processor != self.processor));
        let Some((there, best)) = best else { return self.processor };
        if !may(self.processor) {
            return best;
        }
        let here = placement.load(self.processor);
        // A worker's work alone is not a reason to move before the thread's rest has passed.
        let idle = there == 0 && placement.processors[self.processor].threads > 0;
        if there < here && (idle || rested) { best } else { self.processor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A moment of a machine whose workers have never waited.
    fn at(stamp: u64) -> Moment<'static> {
        Moment { stamp, idle: &[] }
    }

    /// Enters threads with numbers from 100 on.
    fn threads<const N: usize>(placement: &mut Placement) -> [Assignment; N] {
        core::array::from_fn(|index| {
            placement.enter(ThreadId::global(100 + index as u32, 1).unwrap(), false, 0).unwrap()
        })
    }

    /// Resumes a thread. Returns the processor that was chosen.
    fn go(assignment: &mut Assignment, placement: &mut Placement, now: Moment<'_>) -> usize {
        assignment.settle(placement, now);
        assignment.begin(placement, now);
        assignment.processor()
    }

    #[test]
    fn each_thread_gets_a_processor_of_its_own_and_stays_there() {
        let mut placement = Placement::new(4, 1, 100);
        let mut assignments = threads::<6>(&mut placement);
        let chosen = assignments.each_mut().map(|assignment| go(assignment, &mut placement, at(REST)));
        assert_eq!(chosen, [0, 1, 2, 3, 0, 1]);
        assignments[2].end(&mut placement, at(REST + SHORT));
        assert_eq!(go(&mut assignments[2], &mut placement, at(REST + 2 * SHORT)), 2);
    }

    #[test]
    fn a_thread_that_computes_is_pulled_to_where_no_program_runs() {
        let mut placement = Placement::new(2, 1, 100);
        let mut assignments = threads::<4>(&mut placement);
        let chosen = assignments.each_mut().map(|assignment| go(assignment, &mut placement, at(REST)));
        assert_eq!(chosen, [0, 1, 0, 1]);
        assert_eq!(placement.look(at(REST), 0), Look::Balanced);
        assignments[1].end(&mut placement, at(2 * REST));
        assignments[3].end(&mut placement, at(2 * REST));
        let Look::Pull(thread) = placement.look(at(2 * REST), 0) else { panic!("two on one processor") };
        assert_eq!(thread.number(), 100);
        // While the pulled thread has not sent its message, no other is pulled.
        assert_eq!(placement.look(at(2 * REST), 0), Look::Later(TURN));
        assignments[0].end(&mut placement, at(3 * REST));
        assert_eq!(go(&mut assignments[0], &mut placement, at(3 * REST)), 1);
        assert_eq!(placement.look(at(3 * REST), 0), Look::Balanced);
    }

    #[test]
    fn three_threads_on_two_processors_take_turns() {
        let mut placement = Placement::new(2, 1, 100);
        let mut assignments = threads::<3>(&mut placement);
        for assignment in &mut assignments {
            go(assignment, &mut placement, at(REST));
        }
        assert_eq!(placement.look(at(REST), TURN / 4), Look::Later(TURN * 3 / 4));
        let Look::Pull(thread) = placement.look(at(REST), TURN) else { panic!("it is time for a turn") };
        let assignment = &mut assignments[thread.number() as usize - 100];
        assignment.end(&mut placement, at(REST + 1));
        assert_eq!(go(assignment, &mut placement, at(REST + 1)), 1);
        assert_eq!(placement.look(at(REST + 1), TURN + 1), Look::Later(TURN - 1));
    }

    #[test]
    fn a_thread_that_calls_moves_to_its_worker_if_no_program_runs_there() {
        let mut placement = Placement::new(2, 1, 100);
        let mut assignments = threads::<2>(&mut placement);
        let now = at(REST);
        assert_eq!(assignments.each_mut().map(|assignment| go(assignment, &mut placement, now)), [0, 1]);
        let call = |assignment: &mut Assignment, placement: &mut Placement, now| {
            assignment.end(placement, now);
            go(assignment, placement, now)
        };
        let processors_of_calls: Vec<usize> =
            (0..40).map(|turn| call(&mut assignments[1], &mut placement, at(3 * REST + turn))).collect();
        assert!(
            processors_of_calls.iter().all(|&processor| processor == 1),
            "there is a program at its worker's"
        );
        assignments[0].end(&mut placement, at(3 * REST + 50));
        assert_eq!(call(&mut assignments[1], &mut placement, at(3 * REST + 50)), 0);
    }

    #[test]
    fn a_processor_whose_worker_is_at_work_is_not_idle() {
        let mut placement = Placement::new(2, 2, 100);
        let idle = [IdleTime::default(), IdleTime::default()];
        let now = |stamp| Moment { stamp, idle: &idle };
        let [mut first, mut second] = threads::<2>(&mut placement);
        assert_eq!(go(&mut first, &mut placement, now(REST)), 0);
        // The worker of processor 1 is working for a thread, which will continue there.
        assert_eq!(go(&mut second, &mut placement, now(REST)), 0);
        second.end(&mut placement, now(REST));
        idle[1].begin(REST);
        assert_eq!(go(&mut second, &mut placement, now(REST)), 1);
        // On processor 1 are a program and a worker at work, on processor 0 only the third thread's
        // program. So the first thread stays on processor 0.
        idle[1].end(REST);
        first.end(&mut placement, now(3 * REST));
        let [mut third] = threads::<1>(&mut placement);
        assert_eq!(go(&mut third, &mut placement, now(3 * REST)), 0);
        assert_eq!(go(&mut first, &mut placement, now(3 * REST)), 0);
    }

    #[test]
    fn a_thread_runs_only_on_processors_of_its_mask() {
        let mut placement = Placement::new(4, 1, 100);
        assert_eq!(placement.all(), 0b1111);
        let [mut assignment, mut other] = threads::<2>(&mut placement);
        assert!(assignment.allow(&mut placement, 0b0100));
        assert_eq!(go(&mut assignment, &mut placement, at(REST)), 2);
        assert!(!other.allow(&mut placement, 0b0101));
        assert_eq!(go(&mut other, &mut placement, at(REST)), 0);
        // A new thread with an earlier thread's number starts on the processor of that one, but may
        // run anywhere.
        assignment.end(&mut placement, at(REST));
        let mut again = placement.enter(ThreadId::global(100, 2).unwrap(), true, 2).unwrap();
        assert_eq!(
            (again.processor(), again.allowed(), again.settle(&mut placement, at(REST))),
            (2, 0b1111, None)
        );
    }

    #[test]
    fn the_kernel_is_told_of_the_first_processor_and_of_each_new_one() {
        let mut placement = Placement::new(2, 2, 100);
        let id = |version| ThreadId::global(100, version).unwrap();
        let mut assignment = placement.enter(id(1), false, 1).unwrap();
        assert_eq!(assignment.settle(&mut placement, at(REST)), Some(1));
        assert_eq!(assignment.settle(&mut placement, at(REST)), None);
        // A new thread is to run on the processor of the worker that makes it; the kernel still has
        // it on the one of the earlier thread.
        let mut again = placement.enter(id(2), true, 0).unwrap();
        assert_eq!((again.processor(), again.settle(&mut placement, at(REST))), (0, Some(0)));
        let mut other = placement.enter(id(3), false, 0).unwrap();
        assert_eq!(other.settle(&mut placement, at(REST)), Some(0));
    }

    #[test]
    fn with_a_worker_on_each_processor_a_thread_that_makes_calls_stays() {
        let mut placement = Placement::new(3, 3, 100);
        assert!(!placement.has_distant() && (0..3).all(|processor| worker_of(processor, 3) == processor));
        let mut assignment = placement.enter(ThreadId::global(100, 1).unwrap(), false, 2).unwrap();
        for turn in 0..40 {
            assert_eq!(go(&mut assignment, &mut placement, at(3 * REST + turn)), 2);
            assignment.end(&mut placement, at(3 * REST + turn));
        }
        let placement = Placement::new(4, 2, 100);
        assert!(placement.has_distant());
        assert_eq!([0, 1, 2, 3].map(|processor| worker_of(processor, 2)), [0, 1, 0, 1]);
    }

    #[test]
    fn threads_that_run_at_the_same_time_share_the_processors_time() {
        let mut placement = Placement::new(2, 1, 100);
        let [mut a, mut b, mut c] = threads::<3>(&mut placement);
        a.begin(&mut placement, at(0));
        b.begin(&mut placement, at(1000));
        assert!(c.allow(&mut placement, 0b10));
        assert_eq!(go(&mut c, &mut placement, at(1000)), 1);
        assert_eq!(a.used(&mut placement, at(3000)), 2000);
        b.end(&mut placement, at(3000));
        // The time for which the worker works counts for no program.
        let idle = IdleTime::default();
        idle.begin(0);
        idle.end(4000);
        let idle = [idle];
        let late = Moment { stamp: 9000, idle: &idle };
        a.end(&mut placement, late);
        c.end(&mut placement, late);
        assert_eq!([a, b, c].map(|assignment| assignment.used(&mut placement, late)), [3000, 1000, 8000]);
        assert_eq!([0, 1].map(|processor| placement.used_by_programs(processor, late)), [4000, 8000]);
        // From now on no thread runs.
        let later = Moment { stamp: 20000, idle: &idle };
        assert_eq!([0, 1].map(|processor| placement.used_by_programs(processor, later)), [4000, 8000]);
    }

    #[test]
    fn a_busy_worker_counts_as_a_thread_of_its_processor() {
        let mut placement = Placement::new(2, 1, 100);
        let [mut a, mut b] = threads::<2>(&mut placement);
        assert!(b.allow(&mut placement, 0b10));
        assert_eq!((go(&mut a, &mut placement, at(REST)), go(&mut b, &mut placement, at(REST))), (0, 1));
        b.end(&mut placement, at(REST));
        placement.work(0, ThreadId::NIL, 0, REST);
        placement.work(0, ThreadId::global(101, 1).unwrap(), WINDOW, REST + WINDOW);
        let Look::Pull(thread) = placement.look(at(REST + WINDOW), 0) else { panic!("the other is free") };
        assert_eq!(thread.number(), 100);
        placement.work(0, ThreadId::NIL, 0, REST + 3 * WINDOW);
        assert!(!placement.work[0].busy);
    }
}
