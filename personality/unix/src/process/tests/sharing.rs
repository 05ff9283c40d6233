//! Tests of how processes share processors: which of them go first, and that all get something. A
//! model of the machine runs the threads of the highest priority in turn.

use super::*;
use crate::process::BOTTOM;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

/// A time slice of the model, and how many of them are between two samples.
const SLICE: Duration = Duration::from_millis(10);
const SAMPLE: u64 = 10;

/// The time slices that an underlying thread has used.
#[derive(Default)]
struct Slices(AtomicU64);

impl Slices {
    fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Control for Slices {
    fn recall(&self) {}
    fn times(&self) -> (Duration, Duration) {
        (SLICE * self.used() as u32, Duration::ZERO)
    }
}

/// A machine with one processor. Its clock stands still unless threads run.
struct Model {
    system: Arc<Processes>,
    init: Pid,
    /// Slices since the start, and the slice in which the next sample is taken.
    clock: u64,
    next_sample: u64,
    /// Processes that can run, in the order of their turns.
    ready: VecDeque<(Pid, Arc<Slices>)>,
}

impl Model {
    fn new() -> Model {
        let (system, init) = system();
        system.with(|t| t.set_waker(init, Waker::noop()));
        Model { system, init, clock: 0, next_sample: 0, ready: VecDeque::new() }
    }

    fn now(&self) -> Duration {
        SLICE * self.clock as u32
    }

    fn fork(&mut self, parent: Pid) -> (Pid, Arc<Slices>) {
        let slices = Arc::new(Slices::default());
        let options = NewThread { control: slices.clone(), now: self.now(), ..clone_options() };
        let pid = self.system.with(|t| t.create(parent, options)).unwrap();
        self.ready.push_back((pid, slices.clone()));
        (pid, slices)
    }

    fn priority(&self, pid: Pid) -> u8 {
        self.system.with(|t| t.machine_schedule(pid)).unwrap().0
    }

    /// A process waits, or it can run again.
    fn sleep(&mut self, pid: Pid) {
        self.system.with(|t| {
            t.enter(pid);
            t.set_waker(pid, Waker::noop());
        });
        self.ready.retain(|(ready, _)| *ready != pid);
    }

    fn wake(&mut self, process: &(Pid, Arc<Slices>)) {
        assert_eq!(deliver(&self.system, process.0), "return");
        self.ready.push_back(process.clone());
    }

    /// Lets the next thread of the highest priority, if any, run for a slice. Returns its process.
    fn step(&mut self) -> Option<Pid> {
        if self.clock >= self.next_sample {
            let until = self.system.with(|t| {
                t.share_processors(self.now(), 1);
                t.until_next_sharing()
            });
            self.next_sample = self.clock + (until.as_millis() / SLICE.as_millis()) as u64;
        }
        self.clock += 1;
        let highest = self.ready.iter().map(|(pid, _)| self.priority(*pid)).max()?;
        let next = self.ready.iter().position(|(pid, _)| self.priority(*pid) == highest)?;
        let (pid, slices) = self.ready.remove(next)?;
        slices.0.fetch_add(1, Ordering::Relaxed);
        self.ready.push_back((pid, slices));
        Some(pid)
    }

    fn steps(&mut self, count: u64) {
        (0..count).for_each(|_| _ = self.step());
    }

    /// Lets everything run until `process` has used so many more slices. Returns after how many
    /// slices of all that was.
    fn steps_until(&mut self, process: &(Pid, Arc<Slices>), slices: u64) -> u64 {
        let (start, goal) = (self.clock, process.1.used() + slices);
        while process.1.used() < goal {
            self.step();
        }
        self.clock - start
    }
}

#[test]
fn a_program_that_slept_answers_in_its_own_time_among_hundreds_that_compute() {
    let mut model = Model::new();
    let shell = model.fork(model.init);
    model.sleep(shell.0);
    let hogs: Vec<_> = (0..300).map(|_| model.fork(model.init)).collect();
    model.steps(1000);
    for line in 0..3 {
        model.wake(&shell);
        // With equal turns it would take 50 * 301 slices.
        let taken = model.steps_until(&shell, 50);
        assert!(taken <= 60, "line {line} took {taken} slices");
        model.sleep(shell.0);
        model.steps(500);
    }
    let used: Vec<u64> = hogs.iter().map(|(_, slices)| slices.used()).collect();
    let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
    assert!(most - least <= 1, "programs that compute have equal turns: {least}..={most}");
}

#[test]
fn a_program_that_computes_for_long_shares_with_the_others() {
    let mut model = Model::new();
    let late = model.fork(model.init);
    model.sleep(late.0);
    let early = [model.fork(model.init), model.fork(model.init)];
    model.steps(1000);
    model.wake(&late);
    // It goes first for some seconds, and then is one of three.
    model.steps(400);
    let before = late.1.used();
    assert!((200..=350).contains(&before), "{before}");
    model.steps(900);
    assert!((290..=310).contains(&(late.1.used() - before)));
    assert!(early.iter().all(|(pid, _)| model.priority(*pid) == model.priority(late.0)));
}

#[test]
fn nothing_is_gained_by_making_processes() {
    let mut model = Model::new();
    let hog = model.fork(model.init);
    // A chain of processes: each makes the next one after a slice, and ends.
    let mut link = model.fork(model.init);
    let mut slices_of_chain = 0;
    model.steps(1000);
    for turn in 0..3000u64 {
        if model.step() == Some(link.0) {
            slices_of_chain += u64::from(turn >= 1000);
            let next = model.fork(link.0);
            model.ready.retain(|(pid, _)| *pid != link.0);
            exit(&model.system, link.0, 0);
            let init = model.init;
            model.system.with(|t| t.wait_child(init, WaitFor::Any, any())).unwrap();
            link = next;
        }
    }
    assert!((900..=1100).contains(&slices_of_chain), "{slices_of_chain} of 2000");
    assert_eq!(model.priority(hog.0), model.priority(link.0));
}

#[test]
fn a_program_that_has_its_work_done_by_children_sinks_with_them() {
    let mut model = Model::new();
    let hog = model.fork(model.init);
    let shell = model.fork(model.init);
    let mut child = model.fork(shell.0);
    model.sleep(shell.0);
    for _ in 0..3000 {
        if model.step() == Some(child.0) && child.1.used() == 3 {
            model.ready.retain(|(pid, _)| *pid != child.0);
            exit(&model.system, child.0, 0);
            model.system.with(|t| t.wait_child(shell.0, WaitFor::Any, any())).unwrap();
            child = model.fork(shell.0);
        }
    }
    let used = hog.1.used();
    assert!((1000..=1700).contains(&used), "{used} of 3000");
}

#[test]
fn what_is_at_the_bottom_always_gets_something() {
    // So many processes run in turn, for so many slices each, and together use the whole processor.
    for (count, turn) in [(3, 1), (3, SAMPLE), (6, 1), (7, 3), (10, SAMPLE), (100, 1), (20, 5)] {
        let mut model = Model::new();
        let hog = model.fork(model.init);
        let busy: Vec<_> = (0..count).map(|_| model.fork(model.init)).collect();
        busy.iter().for_each(|(pid, _)| model.sleep(*pid));
        model.steps(1000);
        let before = hog.1.used();
        for process in busy.iter().cycle().take((3000 / turn) as usize) {
            model.wake(process);
            model.steps(turn);
            model.sleep(process.0);
        }
        let got = hog.1.used() - before;
        assert!(got >= 3000 / 20, "{count} processes with turns of {turn}: {got}");
        let used = busy.iter().map(|(_, slices)| slices.used());
        assert!(used.clone().all(|used| used * count > 2100), "{:?}", used.collect::<Vec<_>>());
    }
}

#[test]
fn priorities_change_only_while_threads_wait_for_a_processor() {
    let mut model = Model::new();
    let first = model.fork(model.init);
    model.steps(1000);
    let second = model.fork(model.init);
    assert_eq!([first.0, second.0].map(|pid| model.priority(pid)), [100, 100]);
    model.steps(2 * SAMPLE + 100);
    // The use before counts, too: the first is at the bottom.
    assert_eq!(model.priority(first.0), 100 - BOTTOM);
    assert!(model.priority(second.0) > 100 - BOTTOM);
    model.sleep(second.0);
    model.steps(200);
    assert_eq!([first.0, second.0].map(|pid| model.priority(pid)), [100, 100]);
    // New threads and processes begin with the priority of the process that makes them.
    model.wake(&second);
    model.steps(400);
    let thread = spawn_thread(&model.system, first.0);
    let child = model.fork(first.0).0;
    assert_eq!([thread, child].map(|tid| model.priority(tid)), [100 - BOTTOM; 2]);
}

#[test]
fn real_time_threads_keep_their_priority() {
    let mut model = Model::new();
    let [computes, other] = [model.fork(model.init), model.fork(model.init)];
    let schedule = crate::schedule::Schedule {
        policy: crate::schedule::Policy::RoundRobin,
        priority: 1,
        is_reset: false,
    };
    model.system.with(|t| t.thread_mut(computes.0).unwrap().schedule = schedule);
    let told = |model: &Model| model.priority(computes.0);
    model.steps(1000);
    assert_eq!((told(&model), other.1.used()), (101, 0));
}
