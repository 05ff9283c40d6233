//! epoll(7).

use super::{PollQueue, Readiness, Registration, until_ready_or_deadline};
use crate::descriptor::Descriptor;
use crate::file::{FileObject, OpenFile};
use crate::sync::SpinLock;
use crate::vfs::OpenFlags;
use crate::{Environment, Error, NotDone, Result};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use core::time::Duration;

/// An epoll instance.
pub struct Epoll {
    this: Weak<Epoll>,
    state: SpinLock<State>,
    /// Those who wait for this instance.
    queue: PollQueue,
}

#[derive(Default)]
struct State {
    /// A watched file is known by descriptor and description: the same description may be watched through several.
    items: BTreeMap<(Descriptor, u64), Arc<EpollItem>>,
    /// Items that may be ready, each at most once.
    ready: VecDeque<Arc<EpollItem>>,
    /// Items whose files may become ready without waking anybody.
    timed: Vec<Arc<EpollItem>>,
}

/// One watched file. Being the waker that its file's queue wakes, it puts itself on the ready list.
pub struct EpollItem {
    epoll: Weak<Epoll>,
    key: (Descriptor, u64),
    /// Weak, so that watching keeps no file open.
    file: Weak<OpenFile>,
    settings: SpinLock<EpollSettings>,
    registration: SpinLock<Option<Registration>>,
    /// Whether it is on the ready list; changes under the instance's lock.
    queued: AtomicBool,
}

/// What is of interest about a watched file, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpollSettings {
    /// What is of interest; errors and hang-ups always are.
    pub interest: Readiness,
    /// Returned with each event.
    pub data: u64,
    /// Report changes only (EPOLLET).
    pub edge: bool,
    /// Report once, then not until modified (EPOLLONESHOT).
    pub once: bool,
    /// Reported, and disarmed by `once`.
    pub disarmed: bool,
}

/// A reported event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEvent {
    /// What the file is ready for.
    pub ready: Readiness,
    /// [`EpollSettings::data`].
    pub data: u64,
}

/// Instances that may watch each other in a chain.
const DEPTH_MAXIMUM: usize = 5;

impl Epoll {
    /// A new instance as an open file.
    pub fn create() -> Arc<OpenFile> {
        let epoll = Arc::new_cyclic(|this: &Weak<Epoll>| Epoll {
            this: this.clone(),
            state: SpinLock::default(),
            queue: PollQueue::new(),
        });
        OpenFile::of_object(epoll, OpenFlags::READ_WRITE)
    }

    /// Watches a file (EPOLL_CTL_ADD). `EEXIST` if it is watched, `EPERM` if it is always ready, `EINVAL` and `ELOOP`
    /// for instances that would watch themselves or too deeply.
    pub fn add(&self, descriptor: Descriptor, file: &Arc<OpenFile>, settings: EpollSettings) -> Result<()> {
        let queue = file.queue().ok_or(Error::EPERM)?;
        if let Some(inner) = file.object_as::<Epoll>() {
            if core::ptr::eq(&*inner, self) {
                return Err(Error::EINVAL);
            }
            if inner.reaches(self, DEPTH_MAXIMUM - 1)? {
                return Err(Error::ELOOP);
            }
        }
        let key = (descriptor, file.id());
        let item = Arc::new(EpollItem {
            epoll: self.this.clone(),
            key,
            file: Arc::downgrade(file),
            settings: SpinLock::new(settings),
            registration: SpinLock::new(None),
            queued: AtomicBool::new(false),
        });
        {
            let mut state = self.state.lock();
            if state.items.contains_key(&key) {
                return Err(Error::EEXIST);
            }
            state.items.insert(key, item.clone());
            if file.object().is_some_and(|object| object.changes_by_itself()) {
                state.timed.push(item.clone());
            }
        }
        let registration = queue.register(settings.interest, &Waker::from(item.clone()));
        *item.registration.lock() = Some(registration);
        file.add_watch(Arc::downgrade(&item));
        item.check(file);
        Ok(())
    }

    /// Changes what is of interest (EPOLL_CTL_MOD) and arms the item again.
    pub fn modify(
        &self,
        descriptor: Descriptor,
        file: &Arc<OpenFile>,
        settings: EpollSettings,
    ) -> Result<()> {
        let item = self.state.lock().items.get(&(descriptor, file.id())).cloned().ok_or(Error::ENOENT)?;
        *item.settings.lock() = settings;
        let registration = *item.registration.lock();
        if let (Some(queue), Some(registration)) = (file.queue(), registration) {
            queue.set_interest(registration, settings.interest);
        }
        item.check(file);
        Ok(())
    }

    /// Stops watching (EPOLL_CTL_DEL).
    pub fn remove(&self, descriptor: Descriptor, file: &Arc<OpenFile>) -> Result<()> {
        let item = self.take((descriptor, file.id())).ok_or(Error::ENOENT)?;
        item.unregister(file.queue());
        Ok(())
    }

    fn take(&self, key: (Descriptor, u64)) -> Option<Arc<EpollItem>> {
        let mut state = self.state.lock();
        let item = state.items.remove(&key)?;
        state.timed.retain(|other| !Arc::ptr_eq(other, &item));
        if item.queued.swap(false, Ordering::Relaxed) {
            state.ready.retain(|other| !Arc::ptr_eq(other, &item));
        }
        Some(item)
    }

    /// Waits for events, at most `limit`, until `deadline`; empty when that has passed.
    pub async fn wait(
        &self,
        environment: &dyn Environment,
        limit: usize,
        deadline: Option<Duration>,
    ) -> Vec<EpollEvent> {
        let mut events = self.harvest(limit);
        if !events.is_empty() || deadline.is_some_and(|deadline| deadline <= environment.monotonic()) {
            return events;
        }
        loop {
            let waited = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
                let found = self.harvest(limit);
                if found.is_empty() {
                    return Err((NotDone::NotReady, self.next_change().into_iter().chain(deadline).min()));
                }
                Ok(found)
            })
            .await;
            events = waited.unwrap_or_default();
            if !events.is_empty() || deadline.is_some_and(|deadline| deadline <= environment.monotonic()) {
                return events;
            }
        }
    }

    /// Reports what is ready. Each item of the list is looked at once.
    fn harvest(&self, limit: usize) -> Vec<EpollEvent> {
        self.queue_due_items();
        let mut events = Vec::new();
        let mut level = Vec::new();
        let mut looks = self.state.lock().ready.len();
        while events.len() < limit && looks > 0 {
            looks -= 1;
            let item = {
                let mut state = self.state.lock();
                let Some(item) = state.ready.pop_front() else { break };
                // Before the look: a change after it queues the item again.
                item.queued.store(false, Ordering::Relaxed);
                item
            };
            let Some(file) = item.file.upgrade() else { continue };
            let settings = *item.settings.lock();
            let ready = settings.find(file.readiness());
            if ready.is_empty() {
                continue;
            }
            events.push(EpollEvent { ready, data: settings.data });
            if settings.once {
                item.settings.lock().disarmed = true;
            } else if !settings.edge {
                level.push(item);
            }
        }
        // Level-triggered items stay on the list as long as they are found ready, behind the others.
        let mut state = self.state.lock();
        for item in level {
            if state.items.contains_key(&item.key) && !item.queued.swap(true, Ordering::Relaxed) {
                state.ready.push_back(item);
            }
        }
        drop(state);
        events
    }

    /// Items whose time has come announce nothing themselves.
    fn queue_due_items(&self) {
        for item in self.timed_items() {
            if let Some(file) = item.file.upgrade() {
                item.check(&file);
            }
        }
    }

    fn timed_items(&self) -> Vec<Arc<EpollItem>> {
        self.state.lock().timed.clone()
    }

    /// Whether this instance watches `other`, directly or through others; `EINVAL` if it does so too deeply.
    fn reaches(&self, other: &Epoll, depth: usize) -> Result<bool> {
        if core::ptr::eq(self, other) {
            return Ok(true);
        }
        let items: Vec<_> = self.state.lock().items.values().cloned().collect();
        for item in items {
            let Some(inner) = item.file.upgrade().and_then(|file| file.object_as::<Epoll>()) else {
                continue;
            };
            if depth == 0 {
                return Err(Error::EINVAL);
            }
            if inner.reaches(other, depth - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl EpollSettings {
    fn find(&self, readiness: Readiness) -> Readiness {
        match self.disarmed {
            true => Readiness::empty(),
            false => readiness.intersection(self.interest | Readiness::ALWAYS),
        }
    }
}

impl EpollItem {
    /// Queues the item if its file is ready now.
    fn check(self: &Arc<Self>, file: &OpenFile) {
        // Without the lock: asking a watched instance may wake this item.
        let settings = *self.settings.lock();
        if !settings.find(file.readiness()).is_empty() {
            self.clone().wake();
        }
    }

    fn unregister(&self, queue: Option<&PollQueue>) {
        if let (Some(queue), Some(registration)) = (queue, self.registration.lock().take()) {
            queue.unregister(registration);
        }
    }

    /// The watched description is being closed.
    pub(crate) fn forget(&self, queue: Option<&PollQueue>) {
        if let Some(epoll) = self.epoll.upgrade() {
            epoll.take(self.key);
        }
        self.unregister(queue);
    }
}

impl Wake for EpollItem {
    fn wake(self: Arc<Self>) {
        let Some(epoll) = self.epoll.upgrade() else { return };
        if self.settings.lock().disarmed {
            return;
        }
        let mut state = epoll.state.lock();
        // Not if it was removed meanwhile.
        if state.items.get(&self.key).is_some_and(|item| Arc::ptr_eq(item, &self))
            && !self.queued.swap(true, Ordering::Relaxed)
        {
            state.ready.push_back(self);
        }
        drop(state);
        epoll.queue.wake(Readiness::READ);
    }
}

impl FileObject for Epoll {
    fn readiness(&self) -> Readiness {
        self.queue_due_items();
        let ready: Vec<_> = self.state.lock().ready.iter().cloned().collect();
        let found = ready.iter().any(|item| {
            let settings = *item.settings.lock();
            item.file.upgrade().is_some_and(|file| !settings.find(file.readiness()).is_empty())
        });
        if found { Readiness::READ } else { Readiness::empty() }
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn next_change(&self) -> Option<Duration> {
        let timed = self.timed_items();
        timed.iter().filter_map(|item| item.file.upgrade()?.object()?.next_change()).min()
    }

    fn changes_by_itself(&self) -> bool {
        true
    }

    fn label(&self) -> &'static str {
        "anon_inode:[eventpoll]"
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        for item in core::mem::take(&mut self.state.get_mut().items).into_values() {
            if let Some(file) = item.file.upgrade() {
                item.unregister(file.queue());
            }
        }
    }
}
