//! Signals when files become ready (O_ASYNC, F_SETOWN, F_SETSIG of fcntl(2)).

use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use core::sync::atomic::{AtomicI32, Ordering};
use core::task::Waker;
use mach::Machine;
use unix::file::{CloseListener, OpenFile};
use unix::poll::{PollQueue, Readiness, Registration};
use unix::signal::{Cause, Signal, SignalInformation};
use unix::sync::SpinLock;
use unix::thread::System;
use unix::vfs::OpenFlags;

/// Watches an open file, and signals its owner when it becomes ready. The file's queue keeps the
/// watcher, until the file is closed or its owner is to get no more signals.
struct Watcher<M: Machine> {
    system: Weak<System<M>>,
    file: Weak<OpenFile>,
    /// The descriptor for which signals were asked last, which their information names.
    descriptor: AtomicI32,
    registration: SpinLock<Option<Registration>>,
}

/// Begins to signal the owner of a file that can do so when it becomes ready. The flag O_ASYNC must
/// have been set.
pub(crate) fn begin<M: Machine>(system: &Arc<System<M>>, file: &Arc<OpenFile>, descriptor: i32) {
    let Some(queue) = file.queue() else { return };
    let watcher = Arc::new(Watcher {
        system: Arc::downgrade(system),
        file: Arc::downgrade(file),
        descriptor: AtomicI32::new(descriptor),
        registration: SpinLock::new(None),
    });
    let other = file.add_only_close_listener(Arc::downgrade(&watcher));
    let watcher =
        other.inspect(|other| other.descriptor.store(descriptor, Ordering::Relaxed)).unwrap_or(watcher);
    let mut registration = watcher.registration.lock();
    if registration.is_none() {
        *registration = Some(queue.register(interest(file), &Waker::from(watcher.clone())));
    }
}

/// Ends it, after the flag O_ASYNC has been cleared.
pub(crate) fn end<M: Machine>(file: &OpenFile) {
    for listener in file.close_listeners() {
        let listener: Arc<dyn core::any::Any + Send + Sync> = listener;
        if let Ok(watcher) = listener.downcast::<Watcher<M>>() {
            watcher.closed(file.queue());
        }
    }
}

/// What an owner is told. A file that can be read is nearly always ready for writing, so that only
/// what comes counts.
fn interest(file: &OpenFile) -> Readiness {
    match file.flags().contains(OpenFlags::READ) {
        true => Readiness::READ | Readiness::READ_HANGUP,
        false => Readiness::WRITE,
    }
}

impl<M: Machine> Wake for Watcher<M> {
    fn wake(self: Arc<Self>) {
        let (Some(system), Some(file)) = (self.system.upgrade(), self.file.upgrade()) else { return };
        let Some(owner) = file.signal_owner().filter(|_| file.flags().contains(OpenFlags::ASYNC)) else {
            return;
        };
        let readiness = file.readiness();
        if readiness.intersects(interest(&file) | Readiness::ALWAYS) {
            let (code, events) = event(&file, readiness);
            let information = information(&file, self.descriptor.load(Ordering::Relaxed), code, events);
            system.processes().with(|table| table.signal_for_file(&owner, information));
        }
    }
}

/// What has happened, as the signal of a file says it, and the events of poll(2) that this means.
fn event(file: &OpenFile, readiness: Readiness) -> (i32, u32) {
    const IN: i32 = 1;
    const OUT: i32 = 2;
    const ERROR: i32 = 4;
    const HANG_UP: i32 = 6;
    // A pipe tells its ends of each other as of bytes and of room.
    let is_pipe = file.pipe_end().is_some();
    let reads = file.flags().contains(OpenFlags::READ);
    match () {
        () if !is_pipe && readiness.contains(Readiness::ERROR) => (ERROR, 0x8),
        () if !is_pipe && readiness.contains(Readiness::HANGUP) => (HANG_UP, 0x18),
        () if reads => (IN, 0x41),
        () => (OUT, 0x304),
    }
}

/// The signal that a file sends: SIGIO, or the one that is to say what has happened to which
/// descriptor.
pub(crate) fn information(file: &OpenFile, descriptor: i32, code: i32, events: u32) -> SignalInformation {
    /// SI_SIGIO: for signals whose codes mean something else.
    const READY: i32 = -5;
    const WITH_CODES: [Signal; 7] =
        [Signal::ILL, Signal::FPE, Signal::SEGV, Signal::BUS, Signal::TRAP, Signal::CHLD, Signal::SYS];
    let Some(signal) = file.signal() else { return SignalInformation::system(Signal::IO) };
    let code = if WITH_CODES.contains(&signal) { READY } else { code };
    SignalInformation { signal, error: 0, cause: Cause::File { code, events, descriptor } }
}

impl<M: Machine> CloseListener for Watcher<M> {
    fn closed(&self, queue: Option<&PollQueue>) {
        let registration = self.registration.lock().take();
        if let Some((queue, registration)) = queue.zip(registration) {
            queue.unregister(registration);
        }
    }
}
