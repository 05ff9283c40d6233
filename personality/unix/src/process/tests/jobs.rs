//! Tests of job control: stops, continuations and orphaned groups.

use super::*;

#[test]
fn a_job_stops_and_continues() {
    let (system, init) = system();
    let shell = fork(&system, init);
    system.with(|t| t.set_session(shell)).unwrap();
    let job = fork(&system, shell);
    let second = spawn_thread(&system, job);
    system.with(|t| t.set_group(shell, job, job)).unwrap();
    assert_eq!(deliver(&system, second), "return");
    system.with(|t| t.generate_for_group(job, SignalInformation::system(Signal::TSTP)));
    assert_eq!(deliver(&system, job), "stopped");
    let stopped = WaitOptions { stopped: true, continued: true, ..any() };
    assert_eq!(wait(&system, shell, stopped), Ok(None), "the second thread has not noticed");
    system.with(|t| t.enter(second));
    assert_eq!(deliver(&system, second), "stopped");
    assert_eq!(wait(&system, shell, any()), Ok(None));
    assert_eq!(wait(&system, shell, stopped), Ok(Some((job, ChildEvent::Stopped(Signal::TSTP)))));
    assert_eq!(wait(&system, shell, stopped), Ok(None), "each stop is reported once");
    // Signals stay pending while the job is stopped, but SIGCONT and SIGKILL act.
    catch(&system, job, Signal::USR1);
    kill(&system, shell, job, Signal::USR1).unwrap();
    assert_eq!(deliver(&system, job), "stopped");
    kill(&system, shell, job, Signal::CONT).unwrap();
    assert_eq!(deliver(&system, job), "SIGUSR1 return");
    assert_eq!(wait(&system, shell, stopped), Ok(Some((job, ChildEvent::Continued))));
    kill(&system, shell, job, Signal::STOP).unwrap();
    kill(&system, shell, job, Signal::KILL).unwrap();
    assert_eq!(deliver(&system, second), "Killed(SIGKILL)");
    assert_eq!(deliver(&system, job), "Killed(SIGKILL)");
}

#[test]
fn stop_and_continue_signals_cancel_each_other() {
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
fn an_orphaned_group_is_stopped_by_sigstop_but_not_by_the_terminal() {
    let (system, init) = system();
    let orphan = fork(&system, init);
    system.with(|t| t.set_session(orphan)).unwrap();
    kill(&system, init, orphan, Signal::TTIN).unwrap();
    assert_eq!(deliver(&system, orphan), "return");
    kill(&system, init, orphan, Signal::STOP).unwrap();
    assert_eq!(deliver(&system, orphan), "stopped");
}

#[test]
fn a_stopped_job_whose_shell_ends_is_hung_up() {
    let (system, init) = system();
    let shell = fork(&system, init);
    system.with(|t| t.set_session(shell)).unwrap();
    let job = fork(&system, shell);
    system.with(|t| t.set_group(shell, job, job)).unwrap();
    kill(&system, shell, job, Signal::TSTP).unwrap();
    assert_eq!(deliver(&system, job), "stopped");
    assert_eq!(exit(&system, shell, 0).ended_session, Some(shell));
    assert_eq!(deliver(&system, job), "Killed(SIGHUP)");
}
