//! Signals when files become ready (O_ASYNC, F_SETOWN, F_SETSIG of fcntl(2)).

use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use core::any::Any;
use core::task::Waker;
use mach::Machine;
use unix::file::{CloseListener, OpenFile, SignalOwner, SignalTarget};
use unix::poll::{PollQueue, Readiness, Registration};
use unix::process::Table;
use unix::signal::{Cause, Signal, SignalInformation};
use unix::sync::SpinLock;
use unix::thread::System;
use unix::vfs::OpenFlags;

/// Watches an open file, as long as it is open, and signals its owner when it becomes ready.
struct Watcher<M: Machine> {
    system: Weak<System<M>>,
    file: Weak<OpenFile>,
    /// The descriptor for which signals were asked first, which their information names.
    descriptor: i32,
    registration: SpinLock<Option<Registration>>,
}

/// Begins to signal the owner of a file when that becomes ready, unless this was begun before. The
/// flag O_ASYNC says whether signals are sent.
pub(crate) fn begin<M: Machine>(system: &Arc<System<M>>, file: &Arc<OpenFile>, descriptor: i32) {
    let Some(queue) = file.queue() else { return };
    let is_watched = |listener: &Arc<dyn CloseListener>| (&**listener as &dyn Any).is::<Watcher<M>>();
    if file.close_listeners().iter().any(is_watched) {
        return;
    }
    let watcher = Arc::new(Watcher {
        system: Arc::downgrade(system),
        file: Arc::downgrade(file),
        descriptor,
        registration: SpinLock::new(None),
    });
    // A file that can be read is nearly always ready for writing, so that only what comes counts.
    let reads = file.flags().contains(OpenFlags::READ);
    let interest = if reads { Readiness::READ } else { Readiness::WRITE };
    let registration = queue.register(interest, &Waker::from(watcher.clone()));
    *watcher.registration.lock() = Some(registration);
    let listener: Weak<Watcher<M>> = Arc::downgrade(&watcher);
    file.add_close_listener(listener);
}

impl<M: Machine> Wake for Watcher<M> {
    fn wake(self: Arc<Self>) {
        let (Some(system), Some(file)) = (self.system.upgrade(), self.file.upgrade()) else { return };
        let Some(owner) = file.signal_owner().filter(|_| file.flags().contains(OpenFlags::ASYNC)) else {
            return;
        };
        let readiness = file.readiness();
        if !readiness.is_empty() {
            let information = self.information(&owner, readiness);
            system.processes().with(|table| send(table, &owner, information));
        }
    }
}

impl<M: Machine> Watcher<M> {
    fn information(&self, owner: &SignalOwner, readiness: Readiness) -> SignalInformation {
        const IN: i32 = 1;
        const OUT: i32 = 2;
        const ERROR: i32 = 4;
        const HANG_UP: i32 = 6;
        let Some(signal) = owner.signal else { return SignalInformation::system(Signal::IO) };
        let (code, events) = match () {
            () if readiness.contains(Readiness::ERROR) => (ERROR, 0x8),
            () if readiness.contains(Readiness::HANGUP) => (HANG_UP, 0x18),
            () if readiness.contains(Readiness::READ) => (IN, 0x41),
            () => (OUT, 0x304),
        };
        let cause = Cause::File { code, events, descriptor: self.descriptor };
        SignalInformation { signal, error: 0, cause }
    }
}

/// Sends a signal to the owner of a file, if the process that made it the owner may signal it.
fn send(table: &mut Table, owner: &SignalOwner, information: SignalInformation) {
    let may = |table: &Table, pid| {
        table.process(pid).is_ok_and(|process| owner.setter.may_signal_for_file(process.credentials()))
    };
    match owner.target {
        SignalTarget::Process(pid) if may(table, pid) => table.generate_for_process(pid, information),
        SignalTarget::Thread(tid) if table.thread(tid).is_ok_and(|thread| may(table, thread.pid())) => {
            table.generate_for_thread(tid, information);
        }
        SignalTarget::Group(group) => {
            for pid in table.group_members(group) {
                if may(table, pid) {
                    table.generate_for_process(pid, information);
                }
            }
        }
        _ => {}
    }
}

impl<M: Machine> CloseListener for Watcher<M> {
    fn closed(&self, queue: Option<&PollQueue>) {
        if let Some((queue, registration)) = queue.zip(self.registration.lock().take()) {
            queue.unregister(registration);
        }
    }
}
