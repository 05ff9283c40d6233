//! Tests of signals: which thread gets them, when, and what they interrupt (signal(7)).

use super::*;

#[test]
fn signals_are_delivered_in_order_when_unblocked() {
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
    assert_eq!(deliver(&system, child), "return");
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    // A handler's own signal is blocked while it runs, so the second SIGRT8 waits until the first
    // handler has returned.
    assert_eq!(deliver(&system, child), "SIGUSR1 SIGUSR2 SIGRT8 return");
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    assert_eq!(deliver(&system, child), "SIGRT8 return");
    assert!(system.with(|t| t.users[&0].signals) == 0);
}

#[test]
fn action_flags_change_mask_and_disposition() {
    let (system, init) = system();
    let child = fork(&system, init);
    let flags = ActionFlags { reset: true, no_defer: true, ..ActionFlags::default() };
    system.with(|t| t.set_action(child, Signal::USR1, handler(flags))).unwrap();
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(deliver(&system, child), "SIGUSR1 return");
    assert!(!system.with(|t| t.thread(child).unwrap().blocked().contains(Signal::USR1)));
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(deliver(&system, child), "Killed(SIGUSR1)");
    assert_eq!(system.with(|t| t.set_action(init, Signal::KILL, Action::default())), Err(Error::EINVAL));
}

#[test]
fn a_pending_signal_is_dropped_when_it_is_ignored() {
    let (system, init) = system();
    let child = fork(&system, init);
    system.with(|t| t.set_mask(child, SignalSet::of(&[Signal::TERM]))).unwrap();
    kill(&system, init, child, Signal::TERM).unwrap();
    let ignore = Action { disposition: Disposition::Ignore, ..Action::default() };
    system.with(|t| t.set_action(child, Signal::TERM, ignore)).unwrap();
    system.with(|t| t.set_action(child, Signal::TERM, Action::default())).unwrap();
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    assert_eq!(deliver(&system, child), "return");
}

#[test]
fn signals_without_handlers_do_not_end_init() {
    let (system, init) = system();
    let child = fork(&system, init);
    for signal in [Signal::KILL, Signal::TERM, Signal::STOP] {
        kill(&system, child, init, signal).unwrap();
    }
    assert_eq!(deliver(&system, init), "return");
    catch(&system, init, Signal::TERM);
    kill(&system, child, init, Signal::TERM).unwrap();
    assert_eq!(deliver(&system, init), "SIGTERM return");
}

#[test]
fn kill_checks_permission_and_target() {
    let (system, init) = system();
    let (a, b) = (fork(&system, init), fork(&system, init));
    let user = |id| Arc::new(Credentials::executed_as(Ids::all(id), Ids::all(0)));
    system
        .with(|t| t.set_credentials(a, user(1000)).and_then(|()| t.set_credentials(b, user(1001))))
        .unwrap();
    assert_eq!(kill(&system, a, b, Signal::TERM), Err(Error::EPERM));
    assert_eq!(kill(&system, a, b, Signal::CONT), Ok(()), "same session");
    assert_eq!(system.with(|t| t.kill(a, Target::Process(b), None)), Err(Error::EPERM));
    assert_eq!(kill(&system, a, Pid::new(4711).unwrap(), Signal::TERM), Err(Error::ESRCH));
    // A signal to all processes goes to those that the sender may signal. The other processes are
    // no error.
    assert_eq!(system.with(|t| t.kill(b, Target::Everyone, None)), Ok(()));
    let group = Target::Group(init);
    assert_eq!(system.with(|t| t.kill(a, group, None)), Ok(()), "at least itself");
    assert_eq!(system.with(|t| t.kill_thread(init, Some(a), b, None)), Err(Error::ESRCH));
    system.with(|t| t.kill(init, Target::Everyone, Some(Signal::KILL))).unwrap();
    assert_eq!(deliver(&system, a), "Killed(SIGKILL)");
    assert_eq!(deliver(&system, b), "Killed(SIGKILL)");
    assert_eq!(deliver(&system, init), "return");
}

#[test]
fn a_signal_to_a_zombie_succeeds_without_effect() {
    let (system, init) = system();
    let child = fork(&system, init);
    exit(&system, child, 0);
    assert_eq!(kill(&system, init, child, Signal::KILL), Ok(()));
    assert_eq!(wait(&system, init, any()), Ok(Some((child, ChildEvent::Exited(0)))));
}

#[test]
fn a_fault_ends_a_program_that_blocks_or_ignores_it() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::SEGV);
    system.with(|t| t.force(child, Fault::NotMapped.at(0x10)));
    assert_eq!(deliver(&system, child), "SIGSEGV return");
    // The signal is blocked now, as if the handler itself had faulted.
    system.with(|t| t.force(child, Fault::NotMapped.at(0x10)));
    assert_eq!(deliver(&system, child), "Killed(SIGSEGV)");
    let reports = system.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].pid, reports[0].name.as_slice()), (child, &b"init"[..]));
    assert_eq!(reports[0].information, Fault::NotMapped.at(0x10));
}

#[test]
fn a_fault_is_delivered_before_other_signals() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::HUP);
    catch(&system, child, Signal::SEGV);
    kill(&system, init, child, Signal::HUP).unwrap();
    system.with(|t| t.force(child, Fault::NotPermitted.at(1)));
    assert_eq!(deliver(&system, child), "SIGSEGV SIGHUP return");
}

#[test]
fn a_process_ends_by_the_first_fatal_signal() {
    let (system, init) = system();
    let child = fork(&system, init);
    // The writer's reader ends by the same SIGINT before the writer has noticed its own.
    kill(&system, init, child, Signal::INT).unwrap();
    system.with(|t| t.generate_for_thread(child, SignalInformation::system(Signal::PIPE)));
    assert_eq!(deliver(&system, child), "Killed(SIGINT)");
    // A stopped process that was sent SIGINT ends when it is continued.
    let stopped = fork(&system, init);
    kill(&system, init, stopped, Signal::STOP).unwrap();
    assert_eq!(deliver(&system, stopped), "stopped");
    kill(&system, init, stopped, Signal::INT).unwrap();
    assert_eq!(deliver(&system, stopped), "stopped");
    kill(&system, init, stopped, Signal::CONT).unwrap();
    assert_eq!(deliver(&system, stopped), "Killed(SIGINT)");
}

#[test]
fn an_unwritable_signal_frame_raises_sigsegv() {
    let (system, init) = system();
    let child = fork(&system, init);
    catch(&system, child, Signal::USR1);
    kill(&system, init, child, Signal::USR1).unwrap();
    let Delivery::Handler(frame) = system.with(|t| t.return_to_user(child)) else { panic!() };
    system.with(|t| t.frame_failed(child, &frame));
    assert_eq!(deliver(&system, child), "Killed(SIGSEGV)");
}

#[test]
fn a_process_signal_goes_to_a_thread_that_does_not_block_it() {
    let (system, init) = system();
    let child = fork(&system, init);
    let recalls = Arc::new(Recalls::default());
    let options = NewThread { same_process: true, control: recalls.clone(), ..clone_options() };
    let second = system.with(|t| t.create(child, options)).unwrap();
    catch(&system, child, Signal::USR1);
    system.with(|t| t.set_mask(child, SignalSet::of(&[Signal::USR1]))).unwrap();
    assert_eq!((deliver(&system, child), deliver(&system, second)), ("return".into(), "return".into()));
    kill(&system, init, child, Signal::USR1).unwrap();
    assert_eq!(recalls.0.load(Ordering::Relaxed), 1);
    assert_eq!(deliver(&system, child), "return");
    // The thread that was chosen to take the signal exits first. The signal must not be lost.
    system.with(|t| t.exit_thread(second, ExitStatus::Exited(0)));
    system.with(|t| t.set_mask(child, SignalSet::EMPTY)).unwrap();
    assert_eq!(deliver(&system, child), "SIGUSR1 return");
}

#[test]
fn a_signal_interrupts_a_request_that_waits() {
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
    let Delivery::Handler(frame) = system.with(|t| t.return_to_user(child)) else { panic!() };
    assert_eq!(RestartKind::RestartSys.decide(Some(&frame.action)), Resumption::Interrupted);
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
    let Delivery::Handler(frame) = system.with(|t| t.return_to_user(child)) else { panic!() };
    assert_eq!(frame.saved_mask, usr1);
    // If no handler runs, the old mask is restored when the thread returns to its program.
    let other = fork(&system, init);
    system.with(|t| t.set_mask(other, usr1)).unwrap();
    system.with(|t| t.set_temporary_mask(other, SignalSet::EMPTY)).unwrap();
    assert_eq!(deliver(&system, other), "return");
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
fn a_blocked_signal_does_not_end_init_when_it_is_unblocked() {
    let (system, init) = system();
    let segv = SignalSet::of(&[Signal::SEGV]);
    system.with(|t| t.set_mask(init, segv)).unwrap();
    kill(&system, init, init, Signal::SEGV).unwrap();
    system.with(|t| t.set_mask(init, SignalSet::EMPTY)).unwrap();
    assert_eq!(deliver(&system, init), "return");
}
