//! Tests of which processes may inspect another one (ptrace(2)), even after their ids have changed.

use super::*;
use crate::file::{SignalOwner, SignalTarget};

fn with_user(user: Ids) -> Arc<Credentials> {
    Arc::new(Credentials::executed_as(user, Ids::all(user.real)))
}

/// A child of the first process with the credentials `user`, as a login makes it: its program was
/// executed with them.
fn login(system: &Processes, init: Pid, user: Ids) -> Pid {
    let child = fork(system, init);
    system.with(|t| t.set_credentials(child, with_user(user))).unwrap();
    system.with(|t| t.finish_exec(child, program(b"login", with_user(user)))).unwrap();
    child
}

fn inspect(system: &Processes, caller: Pid, target: Pid) -> [crate::Result<()>; 2] {
    [InspectAs::FileUser, InspectAs::RealUser].map(|how| system.with(|t| t.may_inspect(caller, target, how)))
}

const YES: [crate::Result<()>; 2] = [Ok(()); 2];
const NO: [crate::Result<()>; 2] = [Err(Error::EPERM); 2];

#[test]
fn processes_of_one_user_inspect_each_other_until_their_ids_change() {
    let (system, init) = system();
    let (a, b, c) = (
        login(&system, init, Ids::all(1000)),
        login(&system, init, Ids::all(1000)),
        login(&system, init, Ids::all(1001)),
    );
    assert_eq!(inspect(&system, a, b), YES);
    assert_eq!(inspect(&system, a, c), NO);
    assert_eq!(inspect(&system, init, c), YES);
    assert_eq!(inspect(&system, a, init), NO);
    // A program with another user's rights may not be inspected, even after it has given them up.
    let raised = Ids { effective: 0, saved: 0, file: 0, ..Ids::all(1000) };
    system.with(|t| t.finish_exec(b, program(b"su", with_user(raised)))).unwrap();
    assert_eq!((inspect(&system, a, b), inspect(&system, b, b)), (NO, YES));
    system.with(|t| t.set_credentials(b, with_user(Ids::all(1000)))).unwrap();
    assert_eq!(inspect(&system, a, b), NO);
    system.with(|t| t.finish_exec(b, program(b"sh", with_user(Ids::all(1000))))).unwrap();
    assert_eq!(inspect(&system, a, b), YES);
    // A program whose file cannot be read may not be inspected, nor may its child.
    let secret = NewProgram { is_readable: false, ..program(b"secret", with_user(Ids::all(1000))) };
    system.with(|t| t.finish_exec(b, secret)).unwrap();
    let child = fork(&system, b);
    assert_eq!((inspect(&system, a, b), inspect(&system, a, child)), (NO, NO));
    exit(&system, child, 0);
    assert_eq!(inspect(&system, a, child), YES, "a zombie has no memory");
}

#[test]
fn files_compare_file_system_ids_and_calls_real_ids() {
    let (system, init) = system();
    let target = login(&system, init, Ids::all(1000));
    let files_only = login(&system, init, Ids { file: 1000, ..Ids::all(1001) });
    let with_file_id = |file| {
        let ids = Ids { file, ..Ids::all(1001) };
        Arc::new(Credentials::executed_as(ids, ids))
    };
    system.with(|t| t.set_credentials(files_only, with_file_id(1000))).unwrap();
    assert_eq!(inspect(&system, files_only, target), [Ok(()), Err(Error::EPERM)]);
    // A caller with the superuser's file-system id alone may not inspect a process of the
    // superuser.
    system.with(|t| t.set_credentials(files_only, with_file_id(0))).unwrap();
    assert_eq!(inspect(&system, files_only, init), NO);
}

/// A system in which each id is soon allocated again, as there are few.
fn system_with_few_ids() -> (Arc<Processes>, Pid) {
    let (system, init) = system();
    system.with(|t| {
        t.ids = crate::process::ids::Allocator::new(16);
        assert_eq!(t.ids.allocate(), Some(init));
    });
    for _ in 0..8 {
        fork(&system, init);
    }
    (system, init)
}

/// Makes processes until one has the id `wanted`, which is free.
fn fork_until(system: &Processes, init: Pid, wanted: Pid) {
    loop {
        let next = fork(system, init);
        if next == wanted {
            break;
        }
        exit(system, next, 0);
        wait(system, init, any()).unwrap().unwrap();
    }
}

#[test]
fn a_later_group_with_the_id_gets_no_signals_for_a_file() {
    let (system, init) = system_with_few_ids();
    let leader = fork(&system, init);
    system.with(|t| t.set_group(init, leader, leader)).unwrap();
    let member = fork(&system, leader);
    let target = SignalTarget::Group(system.with(|t| t.group_leader(leader)).unwrap());
    let owner = SignalOwner { target, setter: Arc::new(Credentials::superuser()) };
    let signalled = |pid: Pid| {
        system.with(|t| t.signal_for_file(&owner, SignalInformation::system(Signal::USR1)));
        system.with(|t| t.process(pid).unwrap().pending().set()) == SignalSet::of(&[Signal::USR1])
    };
    exit(&system, leader, 0);
    wait(&system, init, any()).unwrap().unwrap();
    assert!(signalled(member), "the group is there without its leader");
    exit(&system, member, 0);
    wait(&system, init, any()).unwrap().unwrap();
    fork_until(&system, init, leader);
    system.with(|t| t.set_group(init, leader, leader)).unwrap();
    assert!(!signalled(leader));
    assert_eq!(system.with(|t| t.group_leader(Pid::new(99).unwrap())), Err(Error::ESRCH));
}

#[test]
fn an_exact_pid_does_not_match_a_later_process_with_the_id() {
    let (system, init) = system_with_few_ids();
    let child = fork(&system, init);
    let exact = system.with(|t| t.process(child).map(Process::exact_pid)).unwrap();
    assert!(system.with(|t| t.exact_process(exact).is_ok()));
    exit(&system, child, 0);
    assert!(system.with(|t| t.exact_process(exact).is_ok()), "a zombie is still it");
    wait(&system, init, any()).unwrap().unwrap();
    // The clock stands still until the same id is allocated again.
    fork_until(&system, init, child);
    assert_eq!(system.with(|t| t.exact_process(exact).map(drop)), Err(Error::ESRCH));
}

#[test]
fn a_child_ends_with_its_own_signal_only_if_the_parent_has_not_called_exec() {
    let (system, init) = system();
    for executes in [false, true] {
        let parent = login(&system, init, Ids::all(1000));
        let options = NewThread { exit_signal: Some(Signal::USR1), ..clone_options() };
        let child = system.with(|t| t.create(parent, options)).unwrap();
        if executes {
            let raised = Ids { effective: 0, saved: 0, file: 0, ..Ids::all(1000) };
            system.with(|t| t.finish_exec(parent, program(b"su", with_user(raised)))).unwrap();
        }
        exit(&system, child, 0);
        let pending = system.with(|t| t.process(parent).unwrap().pending().set());
        assert_eq!(pending.contains(Signal::USR1), !executes);
    }
}

#[test]
fn the_end_of_a_parent_is_not_signalled_to_more_privileged_programs() {
    let (system, init) = system();
    let child = fork(&system, init);
    let set = |signal| system.with(|t| t.thread_mut(child).unwrap().parent_death_signal = signal);
    let get = || system.with(|t| t.thread(child).unwrap().parent_death_signal);
    set(Some(Signal::USR1));
    system.with(|t| t.set_credentials(child, with_user(Ids::all(0)))).unwrap();
    assert_eq!(get(), Some(Signal::USR1));
    system.with(|t| t.set_credentials(child, with_user(Ids::all(1000)))).unwrap();
    assert_eq!(get(), None);
    set(Some(Signal::USR1));
    let other_group =
        Credentials { group: Ids { effective: 7, ..Ids::all(1000) }, ..(*with_user(Ids::all(1000))).clone() };
    system.with(|t| t.finish_exec(child, program(b"x", Arc::new(other_group)))).unwrap();
    assert_eq!(get(), None);
}
