//! Futures that complete when the process table has what a thread's request waits for.

use super::table::{FatalReport, Table, Wake};
use super::{ChildReport, Delivery, Pid, TraceResume, TraceStop, WaitFor, WaitOptions};
use crate::account::Capacity;
use crate::signal::{SignalInformation, SignalSet};
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

/// The processes of a system. All requests of one thread are polled by one async task. Waking the
/// thread means waking this task.
pub struct Processes {
    table: SpinLock<Table>,
}

impl Processes {
    /// A system without processes, for up to `capacity`.
    pub fn new(capacity: Capacity) -> Processes {
        Processes { table: SpinLock::new(Table::new(capacity)) }
    }

    /// Changes the process table; wake-ups happen after the change.
    pub fn with<R>(&self, work: impl FnOnce(&mut Table) -> R) -> R {
        let mut table = self.table.lock();
        let result = work(&mut table);
        table.settle_namespaces();
        let wakes = core::mem::take(&mut table.wakes);
        drop(table);
        for wake in wakes {
            match wake {
                Wake::Request(waker) => waker.wake(),
                Wake::Recall(control) => control.recall(),
                Wake::Notify(listener) => listener.notify(),
            }
        }
        result
    }

    /// Takes the reports of processes that signals ended since the last call.
    pub fn take_reports(&self) -> Vec<FatalReport> {
        self.with(Table::take_reports)
    }

    /// Completes when `ready` returns a value; `ready` is called whenever something happens to
    /// thread `tid`.
    async fn until<T>(&self, tid: Pid, mut ready: impl FnMut(&mut Table) -> Option<T>) -> T {
        poll_fn(|cx| {
            self.with(|table| match ready(table) {
                Some(value) => Poll::Ready(value),
                None => {
                    table.set_waker(tid, cx.waker());
                    Poll::Pending
                }
            })
        })
        .await
    }

    /// Completes when a signal, a stop or the thread's end has to interrupt the request of thread
    /// `tid`.
    pub async fn interrupted(&self, tid: Pid) {
        self.until(tid, |table| table.has_work(tid).then_some(())).await;
    }

    /// Completes when thread `tid` has to end.
    pub async fn killed(&self, tid: Pid) {
        self.until(tid, |table| table.must_exit(tid).then_some(())).await;
    }

    /// Completes when the process of thread `tid` has been chosen by the OOM killer.
    pub async fn gives_memory(&self, tid: Pid) {
        self.until(tid, |table| table.gives_memory(tid).then_some(())).await;
    }

    /// Runs `request` of thread `tid` until it completes or a signal, a stop or the thread's end
    /// interrupts it (`None`; the request is dropped). A request that completes without blocking is
    /// never interrupted.
    pub async fn interruptible<T>(&self, tid: Pid, request: impl Future<Output = T>) -> Option<T> {
        race(request, self.interrupted(tid)).await
    }

    /// Runs `request` of thread `tid` until it completes or the thread has to end (`None`).
    pub async fn killable<T>(&self, tid: Pid, request: impl Future<Output = T>) -> Option<T> {
        race(request, self.killed(tid)).await
    }

    /// What thread `tid` has to do before it may return to its program; waits while it is stopped.
    pub async fn return_to_user(&self, tid: Pid) -> Delivery {
        self.until(tid, |table| match table.return_to_user(tid) {
            Delivery::Stopped => None,
            other => Some(other),
        })
        .await
    }

    /// Stops thread `tid` for its tracer, until that resumes it; returns how. `call` is the number
    /// of the system call in which the thread is. `None` if it does not stop.
    pub async fn stop_for_tracer(&self, tid: Pid, stop: TraceStop, call: Option<u64>) -> Option<TraceResume> {
        if !self.with(|table| table.begin_trace_stop(tid, stop, call)) {
            return None;
        }
        self.until(tid, |table| (!table.is_in_trace_stop(tid)).then(|| table.end_trace_stop(tid)))
            .await
            .into()
    }

    /// Waits for a tracee, or for a child of the process of thread `tid` (wait4(2), waitid(2)).
    /// `Ok(None)` if there is nothing to report (only with `no_hang`). `ECHILD`.
    pub async fn wait_child(
        &self,
        tid: Pid,
        which: WaitFor,
        options: WaitOptions,
    ) -> Result<Option<ChildReport>> {
        self.until(tid, |table| {
            let pid = match table.thread(tid) {
                Ok(thread) => thread.pid(),
                Err(error) => return Some(Err(error)),
            };
            match table.wait_change(tid, which, options) {
                Ok(None) if !options.no_hang => {
                    table.add_child_waiter(pid, tid);
                    None
                }
                done => Some(done),
            }
        })
        .await
    }

    /// Waits until process `child`, which thread `tid` made by vfork, has executed a program or
    /// ended.
    pub async fn wait_vfork(&self, tid: Pid, child: Pid) {
        self.until(tid, |table| (!table.vfork_waits(tid, child)).then_some(())).await;
    }

    /// Makes thread `tid` the only one of its process: every other thread exits, and this waits for
    /// that. `EAGAIN` if the process is ending or another thread has begun before.
    pub async fn become_only_thread(&self, tid: Pid) -> Result<()> {
        self.with(|table| table.begin_exec(tid))?;
        self.until(tid, |table| match (table.is_alone(tid), table.must_exit(tid)) {
            (_, true) => Some(Err(Error::EAGAIN)),
            (true, false) => Some(Ok(())),
            (false, false) => None,
        })
        .await
    }

    /// Waits until thread `tid` is the only one of its process, which is ending.
    pub async fn be_alone(&self, tid: Pid) {
        self.until(tid, |table| (table.is_alone(tid) || table.gives_memory(tid)).then_some(())).await;
    }

    /// Takes a pending signal in `wanted`, or waits for one (sigtimedwait(2) without its timeout).
    pub async fn wait_signal(&self, tid: Pid, wanted: SignalSet) -> SignalInformation {
        let wanted = wanted.as_mask();
        self.until(tid, |table| {
            let taken = table.take_signal(tid, wanted);
            table.set_awaited(tid, if taken.is_some() { SignalSet::EMPTY } else { wanted });
            taken
        })
        .await
    }
}

/// Polls `request` first, then `end`; `None` if `end` completes first.
pub(crate) async fn race<T>(request: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
    let (mut request, mut end) = (pin!(request), pin!(end));
    poll_fn(move |cx| poll_race(request.as_mut(), end.as_mut(), cx)).await
}

fn poll_race<T>(
    request: Pin<&mut impl Future<Output = T>>,
    end: Pin<&mut impl Future<Output = ()>>,
    cx: &mut Context<'_>,
) -> Poll<Option<T>> {
    match request.poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => end.poll(cx).map(|()| None),
    }
}
