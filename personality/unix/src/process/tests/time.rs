//! Tests of processor time: what is counted, and its limit.

use super::*;

/// An underlying thread that has used this many seconds of the processor, in its program and in the
/// server.
struct Used(u64, u64);

impl Control for Used {
    fn recall(&self) {}
    fn times(&self) -> (Duration, Duration) {
        (Duration::from_secs(self.0), Duration::from_secs(self.1))
    }
}

#[test]
fn the_processor_time_of_a_thread_counts_across_exec_and_exit() {
    let (system, init) = system();
    let child = fork(&system, init);
    let used = |t: &Table| {
        let usage = t.usage(t.process(child).unwrap());
        (usage.user_time.as_secs(), usage.system_time.as_secs())
    };
    system.with(|t| {
        t.thread_mut(child).unwrap().set_control(Arc::new(Used(3, 1)));
        assert_eq!(used(t), (3, 1));
        // Exec continues with another underlying thread.
        t.thread_mut(child).unwrap().set_control(Arc::new(Used(2, 2)));
        assert_eq!((used(t), t.thread(child).unwrap().usage().user_time.as_secs()), ((5, 3), 5));
    });
    exit(&system, child, 0);
    let options = WaitOptions { no_hang: true, ..any() };
    let report = system.with(|t| t.wait_child(init, WaitFor::Any, options)).unwrap().unwrap();
    assert_eq!((report.usage.user_time.as_secs(), report.usage.system_time.as_secs()), (5, 3));
}

#[test]
fn a_process_above_its_time_limit_gets_sigxcpu_and_is_then_killed() {
    let (system, init) = system();
    let child = fork(&system, init);
    let limit = Limit { soft: 2, hard: 4 };
    system.with(|t| t.process_mut(child).unwrap().limits.set(Resource::ProcessorTime, limit, true).unwrap());
    let check = |seconds| {
        system.with(|t| {
            t.thread_mut(child).unwrap().control = Arc::new(Used(seconds, 0));
            t.check_time_limits();
            let pending = t.process(child).unwrap().pending().set();
            (pending.contains(Signal::XCPU), t.must_exit(child))
        })
    };
    assert_eq!((check(1), check(3), check(4)), ((false, false), (true, false), (true, true)));
}
