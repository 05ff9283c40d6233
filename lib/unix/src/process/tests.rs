//! Rules of families, groups, waiting and signals, each against the manual page that states it.

mod charges;
mod inspect;
mod time;

use super::*;
use crate::Error;
use crate::credentials::{Credentials, Ids};
use crate::signal::{
    Action, ActionFlags, Cause, ChildEvent, Disposition, Fault, Resumption, Rule, Signal, SignalInformation,
    SignalSet,
};
use crate::testing::{Task, capacity};
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Recalls(AtomicUsize);

impl Control for Recalls {
    fn recall(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn clone_options() -> NewThread {
    NewThread {
        control: Arc::new(Recalls::default()),
        same_process: false,
        share_actions: false,
        clear_handlers: false,
        same_parent: false,
        exit_signal: Some(Signal::CHLD),
        vfork: false,
        keep_stack: true,
        clear_child_tid: 0,
        now: Duration::ZERO,
    }
}

fn program(name: &[u8], credentials: Arc<Credentials>) -> NewProgram<'_> {
    NewProgram { name, credentials, is_readable: true, control: Arc::new(Recalls::default()) }
}

fn system() -> (Arc<Processes>, Pid) {
    let system = Arc::new(Processes::new(capacity(5000)));
    let init = system
        .with(|t| t.create_init(Arc::new(Recalls::default()), Credentials::superuser(), Duration::ZERO));
    (system, init)
}

fn fork(system: &Processes, parent: Pid) -> Pid {
    system.with(|t| t.create(parent, clone_options())).unwrap()
}

fn spawn_thread(system: &Processes, of: Pid) -> Pid {
    system.with(|t| t.create(of, NewThread { same_process: true, ..clone_options() })).unwrap()
}

fn exit(system: &Processes, pid: Pid, status: u8) -> ThreadExit {
    system.with(|t| {
        t.begin_exit(pid, ExitStatus::Exited(status));
        t.exit_thread(pid, ExitStatus::Exited(status))
    })
}

fn any() -> WaitOptions {
    WaitOptions { ended: true, no_hang: true, ..WaitOptions::default() }
}

fn wait(system: &Processes, pid: Pid, options: WaitOptions) -> crate::Result<Option<(Pid, ChildEvent)>> {
    system.with(|t| t.wait_child(pid, WaitFor::Any, options)).map(|r| r.map(|r| (r.pid, r.event)))
}

fn handler(flags: ActionFlags) -> Action {
    Action { disposition: Disposition::Handler(0x4000), flags, ..Action::default() }
}

fn catch(system: &Processes, pid: Pid, signal: Signal) {
    system.with(|t| t.set_action(pid, signal, handler(ActionFlags::default()))).unwrap();
}

fn kill(system: &Processes, sender: Pid, pid: Pid, signal: Signal) -> crate::Result<()> {
    system.with(|t| t.kill(sender, Target::Process(pid), Some(signal)))
}

/// Lets a thread return to its program, acting as its server would: what happened on the way.
fn go(system: &Processes, tid: Pid) -> String {
    let mut seen = String::new();
    loop {
        let step = system.with(|t| t.leave(tid));
        match step {
            Delivery::Return => return seen + "return",
            Delivery::Stopped => return seen + "stopped",
            Delivery::Handler(frame) => seen += &format!("{:?} ", frame.signal),
            Delivery::Exit(status) => {
                system.with(|t| t.exit_thread(tid, status));
                return seen + &format!("{status:?}");
            }
        }
    }
}

#[test]
fn children_end_and_are_waited_for() {
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
fn a_report_can_be_left_for_later() {
    let (system, init) = system();
    let child = fork(&system, init);
    exit(&system, child, 1);
    let keep = WaitOptions { keep: true, ..any() };
    assert_eq!(wait(&system, init, keep), Ok(Some((child, ChildEvent::Exited(1)))));
    assert_eq!(wait(&system, init, any()), Ok(Some((child, ChildEvent::Exited(1)))));
    assert_eq!(wait(&system, init, keep), Err(Error::ECHILD));
}

#[test]
fn clone_children_need_their_flag() {
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
    // SA_NOCLDWAIT reaps as well but still sends the signal.
    let no_wait = handler(ActionFlags { no_child_wait: true, ..ActionFlags::default() });
    system.with(|t| t.set_action(init, Signal::CHLD, no_wait)).unwrap();
    let child = fork(&system, init);
    exit(&system, child, 0);
    assert!(system.with(|t| t.process(child).is_err()));
    assert_eq!(go(&system, init), "SIGCHLD return");
}

#[test]
fn orphans_go_to_the_subreaper_or_init() {
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
fn parent_death_signal() {
    let (system, init) = system();
    let parent = fork(&system, init);
    let child = fork(&system, parent);
    system.with(|t| t.thread_mut(child).unwrap().parent_death_signal = Some(Signal::TERM));
    exit(&system, parent, 0);
    assert_eq!(go(&system, child), "Killed(SIGTERM)");
}

#[test]
fn ids_stay_reserved_while_a_group_has_them() {
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
fn setpgid_and_setsid_rules() {
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
fn a_job_stops_and_continues() {
    let (system, init) = system();
    let shell = fork(&system, init);
    system.with(|t| t.set_session(shell)).unwrap();
    let job = fork(&system, shell);
    let second = spawn_thread(&system, job);
    system.with(|t| t.set_group(shell, job, job)).unwrap();
    assert_eq!(go(&system, second), "return");
    system.with(|t| t.generate_for_group(job, SignalInformation::system(Signal::TSTP)));
    assert_eq!(go(&system, job), "stopped");
    let stopped = WaitOptions { stopped: true, continued: true, ..any() };
    assert_eq!(wait(&system, shell, stopped), Ok(None), "the second thread has not noticed");
    system.with(|t| t.enter(second));
    assert_eq!(go(&system, second), "stopped");
    assert_eq!(wait(&system, shell, any()), Ok(None));
    assert_eq!(wait(&system, shell, stopped), Ok(Some((job, ChildEvent::Stopped(Signal::TSTP)))));
    assert_eq!(wait(&system, shell, stopped), Ok(None), "each stop is reported once");
    // Signals wait while it is stopped, but SIGCONT and SIGKILL act.
    catch(&system, job, Signal::USR1);
    kill(&system, shell, job, Signal::USR1).unwrap();
    assert_eq!(go(&system, job), "stopped");
    kill(&system, shell, job, Signal::CONT).unwrap();
    assert_eq!(go(&system, job), "SIGUSR1 return");
    assert_eq!(wait(&system, shell, stopped), Ok(Some((job, ChildEvent::Continued))));
    kill(&system, shell, job, Signal::STOP).unwrap();
    kill(&system, shell, job, Signal::KILL).unwrap();
    assert_eq!(go(&system, second), "Killed(SIGKILL)");
    assert_eq!(go(&system, job), "Killed(SIGKILL)");
}

#[test]
fn stop_and_continue_cancel_each_other() {
    let (system, init) = system();
    let child = fork(&system, init);
    let mask = SignalSet::of(&[Signal::TSTP, Signal::CONT]);
    system.with(|t| t.set_mask(child, mask)).unwrap();
    kill(&system, init, child, Signal::TSTP).unwrap();
    kill(&system, init, child, Signal::CONT).unwrap();
    assert_eq!(system.with(|t| t.process(child).unwrap().pending().set()), SignalSet::of(&[Signal::CONT]));
    catch(&system, child, Signal::CONT);
    kill(&system, init, child, Signal::CONT).unwrap();
    kill(&system, init, child, Signal::TSTP).unwrap();
    assert_eq!(system.with(|t| t.process(child).unwrap().pending().set()), SignalSet::of(&[Signal::TSTP]));
}

#[test]
fn terminal_stops_do_nothing_to_an_orphaned_group_and_sigstop_does() {
    let (system, init) = system();
    let orphan = fork(&system, init);
    system.with(|t| t.set_session(orphan)).unwrap();
    kill(&system, init, orphan, Signal::TTIN).unwrap();
    assert_eq!(go(&system, orphan), "return");
    kill(&system, init, orphan, Signal::STOP).unwrap();
    assert_eq!(go(&system, orphan), "stopped");
}

#[test]
fn a_stopped_job_whose_shell_ends_is_hung_up() {
    let (system, init) = system();
    let shell = fork(&system, init);
    system.with(|t| t.set_session(shell)).unwrap();
    let job = fork(&system, shell);
    system.with(|t| t.set_group(shell, job, job)).unwrap();
    kill(&system, shell, job, Signal::TSTP).unwrap();
    assert_eq!(go(&system, job), "stopped");
    assert_eq!(exit(&system, shell, 0).ended_session, Some(shell));
    assert_eq!(go(&system, job), "Killed(SIGHUP)");
}

#[test]
fn masks_queues_and_order() {
    let (system, init) = system();
    let child = fork(&system, init);
    for signal in [Signal::USR1, Signal::USR2, Signal::new(40).unwrap()] {
        catch(&system, child, signal);
    }
    system.with(|t| t.set_mask(child, !SignalSet::EMPTY)).unwrap();
    for number in [40, 12, 10, 40, 10] {
        kill(&system, init, child, Signal::new(number).unwrap()).unwrap();
    }
    assert!(!system.with(|t| t.has_work(child)));
    assert_eq!(system.with(|t| t.users[&0].signals), 4);
    assert_eq!(go(&system, child), "return");
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    // A handler's own signal is blocked while it runs, so the second SIGRT8 waits for the first handler's return.
    assert_eq!(go(&system, child), "SIGUSR1 SIGUSR2 SIGRT8 return");
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    assert_eq!(go(&system, child), "SIGRT8 return");
    assert!(system.with(|t| t.users[&0].signals) == 0);
}

#[test]
fn action_flags() {
    let (system, init) = system();
    let child = fork(&system, init);
    let flags = ActionFlags { reset: true, no_defer: true, ..ActionFlags::default() };
    system.with(|t| t.set_action(child, Signal::USR1, handler(flags))).unwrap();
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(go(&system, child), "SIGUSR1 return");
    assert!(!system.with(|t| t.thread(child).unwrap().blocked().contains(Signal::USR1)));
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(go(&system, child), "Killed(SIGUSR1)");
    assert_eq!(system.with(|t| t.set_action(init, Signal::KILL, Action::default())), Err(Error::EINVAL));
}

#[test]
fn ignored_signals_are_forgotten_even_when_pending() {
    let (system, init) = system();
    let child = fork(&system, init);
    system.with(|t| t.set_mask(child, SignalSet::of(&[Signal::TERM]))).unwrap();
    kill(&system, init, child, Signal::TERM).unwrap();
    let ignore = Action { disposition: Disposition::Ignore, ..Action::default() };
    system.with(|t| t.set_action(child, Signal::TERM, ignore)).unwrap();
    system.with(|t| t.set_action(child, Signal::TERM, Action::default())).unwrap();
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    assert_eq!(go(&system, child), "return");
}

#[test]
fn init_is_protected() {
    let (system, init) = system();
    let child = fork(&system, init);
    for signal in [Signal::KILL, Signal::TERM, Signal::STOP] {
        kill(&system, child, init, signal).unwrap();
    }
    assert_eq!(go(&system, init), "return");
    catch(&system, init, Signal::TERM);
    kill(&system, child, init, Signal::TERM).unwrap();
    assert_eq!(go(&system, init), "SIGTERM return");
}

#[test]
fn permission_and_targets() {
    let (system, init) = system();
    let (a, b) = (fork(&system, init), fork(&system, init));
    let user = |id| Arc::new(Credentials { user: Ids::all(id), ..Credentials::superuser() });
    system
        .with(|t| t.set_credentials(a, user(1000)).and_then(|()| t.set_credentials(b, user(1001))))
        .unwrap();
    assert_eq!(kill(&system, a, b, Signal::TERM), Err(Error::EPERM));
    assert_eq!(kill(&system, a, b, Signal::CONT), Ok(()), "same session");
    assert_eq!(system.with(|t| t.kill(a, Target::Process(b), None)), Err(Error::EPERM));
    assert_eq!(kill(&system, a, Pid::new(4711).unwrap(), Signal::TERM), Err(Error::ESRCH));
    // Those that may not be signalled are not meant.
    assert_eq!(system.with(|t| t.kill(b, Target::Everyone, None)), Ok(()));
    let group = Target::Group(init);
    assert_eq!(system.with(|t| t.kill(a, group, None)), Ok(()), "at least itself");
    assert_eq!(system.with(|t| t.kill_thread(init, Some(a), b, None)), Err(Error::ESRCH));
    system.with(|t| t.kill(init, Target::Everyone, Some(Signal::KILL))).unwrap();
    assert_eq!(go(&system, a), "Killed(SIGKILL)");
    assert_eq!(go(&system, b), "Killed(SIGKILL)");
    assert_eq!(go(&system, init), "return");
}

#[test]
fn zombies_can_be_signalled_without_effect() {
    let (system, init) = system();
    let child = fork(&system, init);
    exit(&system, child, 0);
    assert_eq!(kill(&system, init, child, Signal::KILL), Ok(()));
    assert_eq!(wait(&system, init, any()), Ok(Some((child, ChildEvent::Exited(0)))));
}

#[test]
fn a_fault_cannot_be_held_off() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::SEGV);
    system.with(|t| t.force(child, Fault::NotMapped.at(0x10)));
    assert_eq!(go(&system, child), "SIGSEGV return");
    // It is blocked now, as if the handler itself faulted.
    system.with(|t| t.force(child, Fault::NotMapped.at(0x10)));
    assert_eq!(go(&system, child), "Killed(SIGSEGV)");
    let reports = system.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].pid, reports[0].name.as_slice()), (child, &b"init"[..]));
    assert_eq!(reports[0].information, Fault::NotMapped.at(0x10));
}

#[test]
fn faults_come_before_other_signals() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::HUP);
    catch(&system, child, Signal::SEGV);
    kill(&system, init, child, Signal::HUP).unwrap();
    system.with(|t| t.force(child, Fault::NotPermitted.at(1)));
    assert_eq!(go(&system, child), "SIGSEGV SIGHUP return");
}

#[test]
fn a_frame_that_cannot_be_written() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::USR1);
    kill(&system, init, child, Signal::USR1).unwrap();
    let Delivery::Handler(frame) = system.with(|t| t.leave(child)) else { panic!() };
    system.with(|t| t.frame_failed(child, &frame));
    assert_eq!(go(&system, child), "Killed(SIGSEGV)");
}

#[test]
fn process_signals_go_to_a_thread_that_takes_them() {
    let (system, init) = system();
    let child = fork(&system, init);
    let recalls = Arc::new(Recalls::default());
    let options = NewThread { same_process: true, control: recalls.clone(), ..clone_options() };
    let second = system.with(|t| t.create(child, options)).unwrap();
    catch(&system, child, Signal::USR1);
    system.with(|t| t.set_mask(child, SignalSet::of(&[Signal::USR1]))).unwrap();
    assert_eq!((go(&system, child), go(&system, second)), ("return".into(), "return".into()));
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(recalls.0.load(Ordering::Relaxed), 1);
    assert_eq!(go(&system, child), "return");
    // The one that was chosen exits first; nothing is lost.
    system.with(|t| t.exit_thread(second, ExitStatus::Exited(0)));
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    assert_eq!(go(&system, child), "SIGUSR1 return");
}

#[test]
fn requests_are_interrupted() {
    let (system, init) = system();
    let child = fork(&system, init);
    let mut request = Task::new({
        let system = system.clone();
        async move { system.interruptible(child, core::future::pending::<()>()).await }
    });
    request.waits();
    catch(&system, child, Signal::USR1);
    kill(&system, init, child, Signal::URG).unwrap();
    request.waits();
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(request.finish(), None);
    let Delivery::Handler(frame) = system.with(|t| t.leave(child)) else { panic!() };
    assert_eq!(Rule::IfAsked.decide(Some(&frame.action)), Resumption::Interrupted);
    assert!(matches!(frame.information.cause, Cause::Kill { process: 1, user: 0 }));
}

#[test]
fn sigsuspend_delivers_under_its_mask_and_restores_the_old_one() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::USR1);
    let usr1 = SignalSet::of(&[Signal::USR1]);
    system.with(|t| t.set_mask(child, usr1)).unwrap();
    kill(&system, init, child, Signal::USR1).unwrap();
    system.with(|t| t.set_temporary_mask(child, SignalSet::EMPTY)).unwrap();
    let Delivery::Handler(frame) = system.with(|t| t.leave(child)) else { panic!() };
    assert_eq!(frame.saved_mask, usr1);
    // Without a handler the mask returns by itself.
    let other = fork(&system, init);
    system.with(|t| t.set_mask(other, usr1)).unwrap();
    system.with(|t| t.set_temporary_mask(other, SignalSet::EMPTY)).unwrap();
    assert_eq!(go(&system, other), "return");
    assert_eq!(system.with(|t| t.thread(other).unwrap().blocked()), usr1);
}

#[test]
fn sigtimedwait_takes_blocked_signals() {
    let (system, init) = system();
    let child = fork(&system, init);
    let usr1 = SignalSet::of(&[Signal::USR1]);
    system.with(|t| t.set_mask(child, usr1)).unwrap();
    let mut waiting = Task::new({
        let system = system.clone();
        async move { system.wait_signal(child, usr1).await }
    });
    waiting.waits();
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(waiting.finish().signal, Signal::USR1);
    assert_eq!(system.with(|t| t.users[&0].signals), 0);
}

#[test]
fn exec_takes_the_process_over() {
    let (system, init) = system();
    let child = fork(&system, init);
    let threads: Vec<Pid> = (0..10).map(|_| spawn_thread(&system, child)).collect();
    catch(&system, child, Signal::USR1);
    let caller = threads[4];
    let mut exec = Task::new({
        let system = system.clone();
        async move { system.become_only_thread(caller).await }
    });
    exec.waits();
    assert_eq!(system.with(|t| t.begin_exec(threads[5])), Err(Error::EAGAIN));
    for tid in threads.iter().copied().chain([child]).filter(|tid| *tid != caller) {
        assert_eq!(go(&system, tid), "Exited(0)");
    }
    assert_eq!(exec.finish(), Ok(()));
    let credentials = Arc::new(Credentials::superuser());
    assert_eq!(
        system.with(|t| t.finish_exec(caller, program(b"a-rather-long-name", credentials))),
        Ok(child)
    );
    system.with(|t| {
        assert!(t.thread(caller).is_err());
        assert_eq!(t.thread(child).unwrap().name(), b"a-rather-long-n");
        assert_eq!(t.process(child).unwrap().thread_count(), 1);
        assert!(t.process(child).unwrap().actions().lock().caught().is_empty());
    });
    assert_eq!(go(&system, child), "return");
}

#[test]
fn vfork_waits_for_exec_or_exit() {
    let (system, init) = system();
    for executes in [true, false] {
        let child = system.with(|t| t.create(init, NewThread { vfork: true, ..clone_options() })).unwrap();
        let mut waiting = Task::new({
            let system = system.clone();
            async move { system.wait_vfork(init, child).await }
        });
        waiting.waits();
        match executes {
            true => {
                let done =
                    system.with(|t| t.finish_exec(child, program(b"x", Arc::new(Credentials::superuser()))));
                assert_eq!(done, Ok(child));
            }
            false => drop(exit(&system, child, 0)),
        }
        waiting.finish();
    }
}

#[test]
fn thread_limits() {
    let system = Processes::new(capacity(3));
    let init = system
        .with(|t| t.create_init(Arc::new(Recalls::default()), Credentials::superuser(), Duration::ZERO));
    let child = fork(&system, init);
    let user = Arc::new(Credentials { user: Ids::all(1000), ..Credentials::superuser() });
    system.with(|t| t.set_credentials(child, user)).unwrap();
    let limit = Limit { soft: 1, hard: 1 };
    system.with(|t| t.process_mut(child).unwrap().limits.set(Resource::Processes, limit, false)).unwrap();
    assert_eq!(system.with(|t| t.create(child, clone_options())), Err(Error::EAGAIN));
    fork(&system, init);
    assert_eq!(system.with(|t| t.create(init, clone_options())), Err(Error::EAGAIN));
}

#[test]
fn signal_quota() {
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

#[test]
fn a_blocked_signal_does_not_end_init_when_it_is_unblocked() {
    let (system, init) = system();
    let segv = SignalSet::of(&[Signal::SEGV]);
    system.with(|t| t.set_mask(init, segv)).unwrap();
    kill(&system, init, init, Signal::SEGV).unwrap();
    system.with(|t| t.set_mask(init, SignalSet::EMPTY)).unwrap();
    assert_eq!(go(&system, init), "return");
}

#[test]
fn four_thousand_threads() {
    let (system, init) = system();
    let child = fork(&system, init);
    let threads: Vec<Pid> = (0..4000).map(|_| spawn_thread(&system, child)).collect();
    kill(&system, init, child, Signal::TERM).unwrap();
    assert_eq!(go(&system, child), "Killed(SIGTERM)");
    for tid in threads {
        go(&system, tid);
    }
    assert_eq!(wait(&system, init, any()), Ok(Some((child, ChildEvent::Killed(Signal::TERM)))));
    assert_eq!(system.with(|t| t.users[&0].threads), 1);
}

proptest::proptest! {
    /// Any sequence of forks, threads, group changes, signals and exits leaves the table consistent, and when all end
    /// nothing is left over.
    #[test]
    fn the_table_stays_consistent(steps in proptest::collection::vec((0u8..16, proptest::prelude::any::<u16>(), 1u32..=64), 0..150)) {
        let (system, init) = system();
        for (step, which, number) in steps {
            let threads: Vec<Pid> = system.with(|t| t.threads.keys().copied().collect());
            let tid = threads[which as usize % threads.len()];
            let other = threads[(which / 7) as usize % threads.len()];
            let pid = system.with(|t| t.thread(tid).unwrap().pid());
            match step {
                0 | 1 => drop(system.with(|t| t.create(tid, clone_options()))),
                2 => drop(system.with(|t| t.create(tid, NewThread { same_process: true, ..clone_options() }))),
                3 => drop(system.with(|t| t.set_session(pid))),
                4 => drop(system.with(|t| t.set_group(pid, pid, other))),
                10 => drop(system.with(|t| {
                    let target = t.thread(other).unwrap().pid();
                    t.set_group(pid, target, if number > 32 { target } else { pid })
                })),
                11 => drop(system.with(|t| {
                    t.create(tid, NewThread { same_parent: number > 32, exit_signal: None, ..clone_options() })
                })),
                12 => {
                    let options = WaitOptions {
                        ended: number & 1 != 0,
                        stopped: number & 2 != 0,
                        continued: number & 4 != 0,
                        no_hang: true,
                        keep: number & 8 != 0,
                        only_clones: number & 16 != 0,
                        all_kinds: number & 32 != 0,
                    };
                    let which = [WaitFor::Any, WaitFor::Group(other), WaitFor::Process(other)][which as usize % 3];
                    let expected = system.with(|t| model_of_wait(t, pid, which, options));
                    let found = system.with(|t| t.wait_child(pid, which, options));
                    proptest::prop_assert_eq!(found.map(|report| report.map(|report| (report.pid, report.event))), expected);
                }
                13 => {
                    let target = system.with(|t| t.thread(other).unwrap().pid());
                    let signal = if number > 32 { Signal::STOP } else { Signal::CONT };
                    let _ = kill(&system, tid, target, signal);
                }
                5 | 6 => {
                    let target = system.with(|t| t.thread(other).unwrap().pid());
                    let _ = kill(&system, tid, target, Signal::new(number).unwrap());
                }
                7 => drop(wait(&system, pid, any())),
                8 => drop(system.with(|t| t.set_mask(tid, SignalSet::from_bits(u64::from(which) << 8)))),
                _ => drop(go(&system, tid)),
            }
            system.with(|t| check(t));
        }
        loop {
            let threads: Vec<Pid> = system.with(|t| t.threads.keys().copied().filter(|tid| *tid != init).collect());
            let Some(tid) = threads.first() else { break };
            let pid = system.with(|t| t.thread(*tid).unwrap().pid());
            if pid == init {
                system.with(|t| t.exit_thread(*tid, ExitStatus::Exited(0)));
                continue;
            }
            system.with(|t| t.begin_exit(pid, ExitStatus::Exited(0)));
            system.with(|t| t.exit_thread(*tid, ExitStatus::Exited(0)));
        }
        while wait(&system, init, WaitOptions { all_kinds: true, ..any() }).is_ok() {}
        system.with(|t| {
            assert_eq!((t.processes.len(), t.groups.len(), t.sessions.len(), t.users[&0].threads), (1, 1, 1, 1));
            assert_eq!(t.users[&0].signals, t.process(init).unwrap().queued);
        });
    }
}

/// What wait says, by a look at each child.
fn model_of_wait(
    table: &Table,
    parent: Pid,
    which: WaitFor,
    options: WaitOptions,
) -> crate::Result<Option<(Pid, ChildEvent)>> {
    let eligible: Vec<&Process> = table
        .processes()
        .filter(|child| child.parent() == Some(parent))
        .filter(|child| match which {
            WaitFor::Any => true,
            WaitFor::Process(pid) => child.pid() == pid,
            WaitFor::Group(group) => child.group() == group,
        })
        .filter(|child| {
            let is_clone = child.standing.exit_signal != Some(Signal::CHLD);
            options.all_kinds || is_clone == options.only_clones
        })
        .collect();
    let news = |child: &&Process| match (child.phase(), child.standing.unreported, child.stop()) {
        (Phase::Zombie(status), ..) => options.ended.then(|| status.event()),
        (_, Some(event @ ChildEvent::Stopped(_)), Stop::Stopped(_)) => options.stopped.then_some(event),
        (_, Some(event @ ChildEvent::Continued), _) => options.continued.then_some(event),
        _ => None,
    };
    if eligible.is_empty() {
        return Err(Error::ECHILD);
    }
    Ok(eligible.iter().find_map(|child| news(child).map(|event| (child.pid(), event))))
}

/// How many members of a group keep it from being orphaned, by a look at each.
fn supported(table: &Table, group: Pid) -> usize {
    let supports = |child: &&Process| {
        let parent = child.parent().filter(|parent| *parent != Pid::INIT);
        parent.and_then(|parent| table.process(parent).ok()).is_some_and(|parent| {
            !parent.is_zombie() && parent.group() != group && parent.session() == child.session()
        })
    };
    table.processes().filter(|child| child.group() == group && !child.is_zombie()).filter(supports).count()
}

fn check(table: &Table) {
    for process in table.processes.values() {
        let pid = process.pid;
        let group = &table.groups[&process.group()];
        assert!(group.members.contains(&pid));
        assert_eq!(group.session, process.session());
        assert!(process.threads.iter().all(|tid| table.thread(*tid).unwrap().pid == pid));
        assert_eq!(process.is_zombie(), process.threads.is_empty());
        if let Some(parent) = process.parent() {
            assert!(table.process(parent).unwrap().children().any(|child| child == pid));
        }
        assert!(process.children().all(|child| table.process(child).unwrap().parent() == Some(pid)));
        let pending = |tid: &Pid| table.thread(*tid).unwrap().pending.len();
        let records = process.threads.iter().map(pending).sum::<usize>();
        assert_eq!(process.queued as usize, records + process.pending.len());
    }
    for (id, group) in &table.groups {
        assert!(!group.members.is_empty());
        assert!(group.members.iter().all(|member| table.process(*member).unwrap().group() == *id));
        assert_eq!(group.supported, supported(table, *id), "group {id}");
        let stopped = |member: &&Pid| table.process(**member).unwrap().stop() != Stop::Running;
        assert_eq!(group.stopped, group.members.iter().filter(stopped).count(), "group {id}");
    }
    for (session, count) in &table.sessions {
        assert_eq!(table.groups.values().filter(|group| group.session == *session).count(), *count);
    }
    // More than there are steps that take one.
    for id in (1..300).filter_map(Pid::new) {
        assert_eq!(table.ids.is_used(id), table.id_is_used(id), "id {id}");
    }
    let gone_leaders = table.processes.keys().filter(|pid| !table.threads.contains_key(pid)).count();
    let charged = table.users.values().map(|user| user.threads).sum::<u64>() as usize;
    assert_eq!(charged, table.threads.len() + gone_leaders);
}

/// How many records of processes and threads are looked at by a fork, the end of the child and the wait for it, and by
/// moves to another group, with so many other children.
fn looks(siblings: usize) -> [usize; 4] {
    let (system, init) = system();
    let parent = fork(&system, init);
    system.with(|t| t.set_session(parent)).unwrap();
    for number in 0..siblings {
        let sibling = fork(&system, parent);
        if number % 2 == 0 {
            system.with(|t| t.set_group(sibling, sibling, sibling)).unwrap();
        }
    }
    let counted = |work: &mut dyn FnMut() -> Pid| {
        let all = |t: &mut Table| t.processes.looks() + t.threads.looks();
        let before = system.with(all);
        let pid = work();
        (pid, system.with(all) - before)
    };
    let (child, forking) = counted(&mut || fork(&system, parent));
    let (_, ending) = counted(&mut || {
        exit(&system, child, 3);
        child
    });
    let (_, waiting) = counted(&mut || {
        assert_eq!(wait(&system, parent, any()), Ok(Some((child, ChildEvent::Exited(3)))));
        assert_eq!(wait(&system, parent, any()), Ok(None));
        child
    });
    let (_, moving) = counted(&mut || {
        let job = fork(&system, parent);
        system.with(|t| t.set_group(job, job, job)).unwrap();
        system.with(|t| t.set_group(job, job, parent)).unwrap();
        job
    });
    [forking, ending, waiting, moving]
}

#[test]
fn what_fork_exit_and_wait_cost_does_not_depend_on_siblings() {
    assert_eq!(looks(10), looks(1000));
}

#[test]
fn who_has_to_end_makes_nobody() {
    let (system, init) = system();
    let child = fork(&system, init);
    let other = spawn_thread(&system, child);
    let new = |caller, same_process| {
        system.with(|t| t.create(caller, NewThread { same_process, ..clone_options() }))
    };
    // The first thread execs while the other makes a third, which nobody would tell to go.
    system.with(|t| t.begin_exec(child)).unwrap();
    assert_eq!(new(other, true), Err(Error::EAGAIN));
    assert_eq!(new(other, false), Err(Error::EAGAIN));
    system.with(|t| t.exit_thread(other, ExitStatus::Exited(0)));
    assert!(system.with(|t| t.is_alone(child)));
    kill(&system, init, child, Signal::KILL).unwrap();
    assert_eq!(new(child, false), Err(Error::EAGAIN));
}

#[test]
fn a_process_does_not_multiply_under_a_signal() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::INT);
    // It came to the whole group after the call had begun: a child made now would not get it.
    kill(&system, init, child, Signal::INT).unwrap();
    assert_eq!(system.with(|t| t.create(child, clone_options())), Err(Error::EINTR));
    assert!(system.with(|t| t.create(child, NewThread { same_process: true, ..clone_options() })).is_ok());
    assert_eq!(go(&system, child), "SIGINT return");
    system.with(|t| t.enter(child));
    fork(&system, child);
}
