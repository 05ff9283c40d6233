//! Tests of families, groups, waiting and signals, each against the manual page that states the
//! rule.

mod charges;
mod families;
mod indexes;
mod inspect;
mod jobs;
mod programs;
mod sharing;
mod signals;
mod time;

use super::*;
use crate::Error;
use crate::credentials::{Credentials, Ids};
use crate::signal::{
    Action, ActionFlags, Cause, ChildEvent, Disposition, Fault, RestartKind, Resumption, Signal,
    SignalInformation, SignalSet,
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
        credentials: None,
        namespaces: None,
        control: Arc::new(Recalls::default()),
        same_process: false,
        share_actions: false,
        clear_handlers: false,
        same_parent: false,
        exit_signal: Some(Signal::CHLD),
        vfork: false,
        keep_stack: true,
        now: Duration::ZERO,
    }
}

fn program(name: &[u8], credentials: Arc<Credentials>) -> NewProgram<'_> {
    NewProgram {
        name,
        credentials,
        is_readable: true,
        memory_owner: Default::default(),
        control: Arc::new(Recalls::default()),
    }
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

/// Lets a thread return to its program, as the server would, and returns the names of the handlers,
/// stops and exits on the way.
fn deliver(system: &Processes, tid: Pid) -> String {
    let mut seen = String::new();
    loop {
        let step = system.with(|t| t.return_to_user(tid));
        match step {
            Delivery::Return | Delivery::Step => return seen + "return",
            Delivery::Executed(_) => seen += "executed ",
            Delivery::Stopped => return seen + "stopped",
            Delivery::Trace(stop) => return seen + &format!("{stop:?}"),
            Delivery::Handler(frame) => seen += &format!("{:?} ", frame.signal),
            Delivery::Exit(status) => {
                system.with(|t| t.exit_thread(tid, status));
                return seen + &format!("{status:?}");
            }
        }
    }
}
