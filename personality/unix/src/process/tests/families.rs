//! Tests of families, ids, groups and sessions: wait(2), fork(2), setpgid(2), setsid(2).

use super::*;

#[test]
fn wait_reports_children_that_ended() {
    let (system, init) = system();
    assert_eq!(wait(&system, init, any()), Err(Error::ECHILD));
    let child = fork(&system, init);
    assert_eq!(wait(&system, init, any()), Ok(None));
    let mut waiting = Task::new({
        let system = system.clone();
        async move { system.wait_child(init, WaitFor::Any, WaitOptions { no_hang: false, ..any() }).await }
    });
    waiting.waits();
    system.with(|t| t.account(child, Duration::from_secs(2), Duration::from_secs(1)));
    assert_eq!(exit(&system, child, 7).ended_process, Some(child));
    let report = waiting.finish().unwrap().unwrap();
    assert_eq!((report.pid, report.event), (child, ChildEvent::Exited(7)));
    assert_eq!(report.usage.user_time, Duration::from_secs(2));
    assert_eq!(system.with(|t| t.process(init).unwrap().children_usage.system_time), Duration::from_secs(1));
    assert!(system.with(|t| t.process(child).is_err() && t.users[&0].threads == 1));
}

#[test]
fn wait_with_wnowait_leaves_the_report() {
    let (system, init) = system();
    let child = fork(&system, init);
    exit(&system, child, 1);
    let keep = WaitOptions { keep: true, ..any() };
    assert_eq!(wait(&system, init, keep), Ok(Some((child, ChildEvent::Exited(1)))));
    assert_eq!(wait(&system, init, any()), Ok(Some((child, ChildEvent::Exited(1)))));
    assert_eq!(wait(&system, init, keep), Err(Error::ECHILD));
}

#[test]
fn wait_finds_clone_children_only_with_their_flag() {
    let (system, init) = system();
    let quiet = system.with(|t| t.create(init, NewThread { exit_signal: None, ..clone_options() })).unwrap();
    assert_eq!(wait(&system, init, any()), Err(Error::ECHILD));
    exit(&system, quiet, 0);
    assert!(!system.with(|t| t.process(init).unwrap().pending().set().contains(Signal::CHLD)));
    let clones = WaitOptions { only_clones: true, ..any() };
    assert_eq!(wait(&system, init, clones), Ok(Some((quiet, ChildEvent::Exited(0)))));
}

#[test]
fn ignoring_sigchld_leaves_no_zombies() {
    let (system, init) = system();
    let ignore = Action { disposition: Disposition::Ignore, ..Action::default() };
    system.with(|t| t.set_action(init, Signal::CHLD, ignore)).unwrap();
    let child = fork(&system, init);
    let mut waiting = Task::new({
        let system = system.clone();
        async move { system.wait_child(init, WaitFor::Any, WaitOptions { no_hang: false, ..any() }).await }
    });
    waiting.waits();
    exit(&system, child, 0);
    assert_eq!(waiting.finish().unwrap_err(), Error::ECHILD);
    // With SA_NOCLDWAIT there are no zombies either, but the signal is sent.
    let no_wait = handler(ActionFlags { no_child_wait: true, ..ActionFlags::default() });
    system.with(|t| t.set_action(init, Signal::CHLD, no_wait)).unwrap();
    let child = fork(&system, init);
    exit(&system, child, 0);
    assert!(system.with(|t| t.process(child).is_err()));
    assert_eq!(deliver(&system, init), "SIGCHLD return");
}

#[test]
fn orphans_are_adopted_by_the_subreaper_or_init() {
    let (system, init) = system();
    let reaper = fork(&system, init);
    system.with(|t| t.process_mut(reaper).unwrap().is_subreaper = true);
    let middle = fork(&system, reaper);
    let leaf = fork(&system, middle);
    let zombie = fork(&system, middle);
    exit(&system, zombie, 3);
    exit(&system, middle, 0);
    assert_eq!(system.with(|t| t.process(leaf).unwrap().parent()), Some(reaper));
    let reports = [wait(&system, reaper, any()), wait(&system, reaper, any())];
    assert!(reports.contains(&Ok(Some((zombie, ChildEvent::Exited(3))))));
    exit(&system, reaper, 0);
    assert_eq!(system.with(|t| t.process(leaf).unwrap().parent()), Some(init));
}

#[test]
fn the_end_of_a_parent_sends_the_death_signal() {
    let (system, init) = system();
    let parent = fork(&system, init);
    let child = fork(&system, parent);
    system.with(|t| t.thread_mut(child).unwrap().parent_death_signal = Some(Signal::TERM));
    exit(&system, parent, 0);
    assert_eq!(deliver(&system, child), "Killed(SIGTERM)");
}

#[test]
fn an_id_stays_reserved_while_a_group_has_it() {
    let (system, init) = system();
    let leader = fork(&system, init);
    system.with(|t| t.set_session(leader)).unwrap();
    let member = fork(&system, leader);
    exit(&system, leader, 0);
    wait(&system, init, any()).unwrap();
    assert!(system.with(|t| t.process(leader).is_err() && t.id_is_used(leader)));
    exit(&system, member, 0);
    wait(&system, init, any()).unwrap();
    assert!(system.with(|t| !t.id_is_used(leader)));
}

#[test]
fn setpgid_and_setsid_refuse_what_the_manual_says() {
    let (system, init) = system();
    let shell = fork(&system, init);
    system.with(|t| t.set_session(shell)).unwrap();
    assert_eq!(system.with(|t| t.set_session(shell)), Err(Error::EPERM));
    assert_eq!(system.with(|t| t.set_group(shell, shell, shell)), Err(Error::EPERM));
    let (a, b) = (fork(&system, shell), fork(&system, shell));
    assert_eq!(system.with(|t| t.set_group(shell, a, a)), Ok(()));
    assert_eq!(system.with(|t| t.set_group(shell, b, a)), Ok(()));
    assert_eq!(system.with(|t| t.group_members(a)), [a, b]);
    assert_eq!(system.with(|t| t.set_group(shell, b, Pid::new(999).unwrap())), Err(Error::EPERM));
    assert_eq!(system.with(|t| t.set_group(a, b, b)), Err(Error::ESRCH));
    system
        .with(|t| {
            t.begin_exec(b).and_then(|()| t.finish_exec(b, program(b"b", Arc::new(Credentials::superuser()))))
        })
        .unwrap();
    assert_eq!(system.with(|t| t.set_group(shell, b, b)), Err(Error::EACCES));
    assert_eq!(system.with(|t| t.set_group(b, b, b)), Ok(()));
    let c = fork(&system, shell);
    system.with(|t| t.set_session(c)).unwrap();
    assert_eq!(system.with(|t| t.set_group(shell, c, shell)), Err(Error::EPERM));
    assert_eq!(system.with(|t| t.set_session(a)), Err(Error::EPERM), "it leads a group");
}

#[test]
fn a_process_can_have_four_thousand_threads() {
    let (system, init) = system();
    let child = fork(&system, init);
    let threads: Vec<Pid> = (0..4000).map(|_| spawn_thread(&system, child)).collect();
    kill(&system, init, child, Signal::TERM).unwrap();
    assert_eq!(deliver(&system, child), "Killed(SIGTERM)");
    for tid in threads {
        deliver(&system, tid);
    }
    assert_eq!(wait(&system, init, any()), Ok(Some((child, ChildEvent::Killed(Signal::TERM)))));
    assert_eq!(system.with(|t| t.users[&0].threads), 1);
}

#[test]
fn a_thread_that_has_to_end_cannot_fork() {
    let (system, init) = system();
    let child = fork(&system, init);
    let other = spawn_thread(&system, child);
    let new = |caller, same_process| {
        system.with(|t| t.create(caller, NewThread { same_process, ..clone_options() }))
    };
    // The first thread calls exec while the other one makes a third, which would not learn that it
    // has to end.
    system.with(|t| t.begin_exec(child)).unwrap();
    assert_eq!(new(other, true), Err(Error::EAGAIN));
    assert_eq!(new(other, false), Err(Error::EAGAIN));
    system.with(|t| t.exit_thread(other, ExitStatus::Exited(0)));
    assert!(system.with(|t| t.is_alone(child)));
    kill(&system, init, child, Signal::KILL).unwrap();
    assert_eq!(new(child, false), Err(Error::EAGAIN));
}

#[test]
fn fork_fails_while_a_signal_is_pending() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::INT);
    // The signal was sent to the whole group after the call of fork had begun. A child that is made
    // now would not get it.
    kill(&system, init, child, Signal::INT).unwrap();
    assert_eq!(system.with(|t| t.create(child, clone_options())), Err(Error::EINTR));
    assert!(system.with(|t| t.create(child, NewThread { same_process: true, ..clone_options() })).is_ok());
    assert_eq!(deliver(&system, child), "SIGINT return");
    system.with(|t| t.enter(child));
    fork(&system, child);
}
