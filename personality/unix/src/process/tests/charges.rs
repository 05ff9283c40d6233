//! Tests of what counts against a user's limit on processes and threads, and how long:
//! setrlimit(2), RLIMIT_NPROC.

use super::*;

fn user(id: u32) -> Arc<Credentials> {
    Arc::new(Credentials::executed_as(Ids::all(id), Ids::all(0)))
}

/// How many threads count against the limit of user `id`.
fn count(system: &Processes, id: u32) -> u64 {
    system.with(|t| t.users.get(&id).map_or(0, |charges| charges.threads))
}

/// A process of user 1000 that may have `limit` processes.
fn limited(system: &Processes, init: Pid, limit: u64) -> Pid {
    let pid = fork(system, init);
    system.with(|t| {
        let limit = Limit { soft: limit, hard: limit };
        t.process_mut(pid).unwrap().limits.set(Resource::Processes, limit, true).unwrap();
        t.set_credentials(pid, user(1000)).unwrap();
    });
    pid
}

#[test]
fn a_zombie_counts_until_it_is_waited_for() {
    let (system, init) = system();
    let parent = limited(&system, init, 3);
    let children = [fork(&system, parent), fork(&system, parent)];
    let refused = || system.with(|t| t.create(parent, clone_options())) == Err(Error::EAGAIN);
    assert!(refused());
    children.into_iter().for_each(|child| assert!(exit(&system, child, 0).ended_process.is_some()));
    assert!(refused(), "two zombies and their parent are three processes");
    assert_eq!(count(&system, 1000), 3);
    wait(&system, parent, any()).unwrap().unwrap();
    assert_eq!(count(&system, 1000), 2);
    fork(&system, parent);
    assert!(refused());
}

#[test]
fn a_first_thread_counts_until_its_process_is_removed() {
    let (system, init) = system();
    let process = limited(&system, init, 10);
    let other = spawn_thread(&system, process);
    system.with(|t| t.exit_thread(process, ExitStatus::Exited(0)));
    assert_eq!(count(&system, 1000), 2, "the leader of a process that goes on is a zombie");
    system.with(|t| t.exit_thread(other, ExitStatus::Exited(0)));
    assert_eq!(count(&system, 1000), 1);
    wait(&system, init, any()).unwrap().unwrap();
    assert_eq!(count(&system, 1000), 0);
}

#[test]
fn a_zombie_whose_parent_ignores_sigchld_does_not_count() {
    let (system, init) = system();
    let parent = limited(&system, init, 10);
    let ignore = Action { disposition: Disposition::Ignore, ..Action::default() };
    system.with(|t| t.set_action(parent, Signal::CHLD, ignore)).unwrap();
    let child = fork(&system, parent);
    assert_eq!(count(&system, 1000), 2);
    exit(&system, child, 0);
    assert_eq!(count(&system, 1000), 1);
}

#[test]
fn a_zombie_counts_for_its_user_when_its_parent_changes_its_user() {
    let (system, init) = system();
    let parent = limited(&system, init, 10);
    let (zombie, alive) = (fork(&system, parent), fork(&system, parent));
    exit(&system, zombie, 0);
    system.with(|t| t.set_credentials(parent, user(1001))).unwrap();
    assert_eq!((count(&system, 1000), count(&system, 1001)), (2, 1));
    exit(&system, parent, 0);
    exit(&system, alive, 0);
    assert_eq!((count(&system, 1000), count(&system, 1001)), (2, 1), "all three are zombies");
    while wait(&system, init, any()).is_ok() {}
    assert_eq!((count(&system, 1000), count(&system, 1001), count(&system, 0)), (0, 0, 1));
}

#[test]
fn each_thread_counts_for_its_own_user() {
    let (system, init) = system();
    let process = limited(&system, init, 10);
    let other = spawn_thread(&system, process);
    system.with(|t| t.set_credentials(other, user(1001))).unwrap();
    assert_eq!((count(&system, 1000), count(&system, 1001)), (1, 1));
    system.with(|t| t.exit_thread(process, ExitStatus::Exited(0)));
    system.with(|t| t.set_credentials(other, user(1002))).unwrap();
    assert_eq!((count(&system, 1000), count(&system, 1001), count(&system, 1002)), (1, 0, 1));
    system.with(|t| t.exit_thread(other, ExitStatus::Exited(0)));
    assert_eq!(
        (count(&system, 1000), count(&system, 1002)),
        (1, 0),
        "the zombie is the first thread's user's"
    );
}

#[test]
fn a_thread_that_execs_counts_as_the_first_thread_of_its_process() {
    let (system, init) = system();
    let process = limited(&system, init, 10);
    let other = spawn_thread(&system, process);
    system.with(|t| t.set_credentials(other, user(1001))).unwrap();
    catch(&system, process, Signal::USR1);
    system.with(|t| t.set_mask(other, SignalSet::of(&[Signal::USR1]))).unwrap();
    system.with(|t| t.set_mask(process, SignalSet::of(&[Signal::USR1]))).unwrap();
    kill(&system, init, process, Signal::USR1).unwrap();
    let signals = |id| system.with(|t| t.users.get(&id).map_or(0, |charges| charges.signals));
    assert_eq!((signals(1000), signals(1001)), (1, 0));
    system.with(|t| {
        t.begin_exec(other).unwrap();
        t.exit_thread(process, ExitStatus::Exited(0));
        t.finish_exec(other, program(b"program", user(1001))).unwrap();
    });
    assert_eq!((count(&system, 1000), count(&system, 1001)), (0, 1));
    assert_eq!((signals(1000), signals(1001)), (0, 1), "what is pending counts for the process's user");
    exit(&system, process, 0);
    wait(&system, init, any()).unwrap().unwrap();
    assert_eq!((count(&system, 1001), signals(1001), count(&system, 0)), (0, 0, 1));
}

#[test]
fn an_abandoned_thread_does_not_count() {
    let (system, init) = system();
    let process = limited(&system, init, 10);
    let (child, thread) = (fork(&system, process), spawn_thread(&system, process));
    assert_eq!(count(&system, 1000), 3);
    system.with(|t| t.abandon(child));
    assert_eq!(count(&system, 1000), 2);
    system.with(|t| t.abandon(thread));
    assert_eq!(count(&system, 1000), 1);
}

#[test]
fn clone_fails_at_the_limit_on_threads() {
    let system = Processes::new(capacity(3));
    let init = system
        .with(|t| t.create_init(Arc::new(Recalls::default()), Credentials::superuser(), Duration::ZERO));
    let child = fork(&system, init);
    let user = Arc::new(Credentials::executed_as(Ids::all(1000), Ids::all(0)));
    system.with(|t| t.set_credentials(child, user)).unwrap();
    let limit = Limit { soft: 1, hard: 1 };
    system.with(|t| t.process_mut(child).unwrap().limits.set(Resource::Processes, limit, false)).unwrap();
    assert_eq!(system.with(|t| t.create(child, clone_options())), Err(Error::EAGAIN));
    fork(&system, init);
    assert_eq!(system.with(|t| t.create(init, clone_options())), Err(Error::EAGAIN));
}

#[test]
fn sigqueue_fails_at_the_quota_of_signals() {
    let (system, init) = system();
    let child = fork(&system, init);
    let limit = Limit { soft: 2, hard: 2 };
    system.with(|t| t.process_mut(child).unwrap().limits.set(Resource::PendingSignals, limit, true)).unwrap();
    system.with(|t| t.set_mask(child, !SignalSet::EMPTY)).unwrap();
    let cause = Cause::Queue { code: -1, process: 1, user: 0, value: 9 };
    let queue = |number| {
        let signal = Signal::new(number).unwrap();
        let information = SignalInformation { signal, error: 0, cause };
        system.with(|t| t.send_to_process(init, child, Some(signal), Some(information)))
    };
    assert_eq!([queue(40), queue(40), queue(40)], [Ok(()), Ok(()), Err(Error::EAGAIN)]);
    assert_eq!(queue(10), Ok(()), "standard signals are pending even so");
    exit(&system, child, 0);
    assert!(system.with(|t| t.users[&0].signals) <= 1, "only the parent's SIGCHLD may be queued");
}
