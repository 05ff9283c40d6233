//! poll(2) and select(2): waiting for several files.

use super::{Readiness, Registration};
use crate::file::OpenFile;
use crate::sync::Turns;
use crate::{BoxFuture, Environment};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// A file that poll waits for, the events of interest, and the events that were found.
pub struct Watch {
    /// The file that is waited for.
    pub file: Arc<OpenFile>,
    /// The events of interest; errors and hang-ups are always reported.
    pub interest: Readiness,
    /// The events for which the file was found ready.
    pub ready: Readiness,
}

impl Watch {
    /// A file to wait for, and the events of interest.
    pub fn new(file: Arc<OpenFile>, interest: Readiness) -> Watch {
        Watch { file, interest, ready: Readiness::empty() }
    }

    fn look(&mut self) -> bool {
        self.ready = self.file.readiness().intersection(self.interest | Readiness::ALWAYS);
        !self.ready.is_empty()
    }
}

/// Waits until one of the files is ready or `deadline` ([`Environment::monotonic`]; `None`: never)
/// has passed. Returns how many are ready; [`Watch::ready`] then has the events.
pub async fn poll(environment: &dyn Environment, watches: &mut [Watch], deadline: Option<Duration>) -> usize {
    if watches.len() > REGISTERED {
        return poll_many(environment, watches, deadline).await;
    }
    let ready = watches.iter_mut().filter_map(|watch| watch.look().then_some(())).count();
    if ready > 0 || deadline.is_some_and(|deadline| deadline <= environment.monotonic()) {
        return ready;
    }
    Polling { environment, watches, deadline, registrations: Vec::new(), sleep: None }.await
}

/// Up to this many files, poll registers with each file's queue. With more it looks at them
/// periodically.
const REGISTERED: usize = 4096;
/// After this many files, a look at all of them lets other tasks run.
const TURN: u32 = 256;

/// Waits for so many files that a look at all of them takes long: looks at them periodically, the
/// less often the more there are, and lets other tasks run in between.
async fn poll_many(
    environment: &dyn Environment,
    watches: &mut [Watch],
    deadline: Option<Duration>,
) -> usize {
    let pause = Duration::from_micros(4 * watches.len() as u64);
    let mut turns = Turns::every(TURN);
    loop {
        let mut ready = 0;
        for watch in watches.iter_mut() {
            ready += usize::from(watch.look());
            turns.step().await;
        }
        let now = environment.monotonic();
        if ready > 0 || deadline.is_some_and(|deadline| deadline <= now) {
            return ready;
        }
        environment.sleep_until(deadline.into_iter().fold(now + pause, Duration::min)).await;
    }
}

struct Polling<'a> {
    environment: &'a dyn Environment,
    watches: &'a mut [Watch],
    deadline: Option<Duration>,
    /// One registration for each watch whose file has a queue.
    registrations: Vec<Option<Registration>>,
    sleep: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl Future for Polling<'_> {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = self.get_mut();
        if this.registrations.is_empty() {
            for watch in this.watches.iter() {
                let queue = watch.file.queue();
                this.registrations.push(queue.map(|queue| queue.register(watch.interest, cx.waker())));
            }
        } else {
            for (watch, registration) in this.watches.iter().zip(&this.registrations) {
                if let (Some(queue), Some(registration)) = (watch.file.queue(), registration) {
                    queue.update(*registration, cx.waker());
                }
            }
        }
        // The waiter is registered: a change after this look wakes it, and a change before is seen
        // by the look.
        loop {
            let ready = this.watches.iter_mut().filter_map(|watch| watch.look().then_some(())).count();
            let now = this.environment.monotonic();
            if ready > 0 || this.deadline.is_some_and(|deadline| deadline <= now) {
                return Poll::Ready(ready);
            }
            let changes = this.watches.iter().filter_map(|watch| watch.file.object()?.next_change());
            let Some(until) = changes.chain(this.deadline).min() else {
                this.sleep = None;
                return Poll::Pending;
            };
            if this.sleep.as_ref().is_none_or(|(old, _)| *old != until) {
                this.sleep = Some((until, this.environment.sleep_until(until)));
            }
            let (_, sleep) = this.sleep.as_mut().expect("just set");
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.sleep = None;
        }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        for (watch, registration) in self.watches.iter().zip(&self.registrations) {
            if let (Some(queue), Some(registration)) = (watch.file.queue(), registration) {
                queue.unregister(*registration);
            }
        }
    }
}
