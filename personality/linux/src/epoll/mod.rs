//! Epoll instances (epoll(7)).

mod nesting;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use core::time::Duration;
use nesting::Look;
use unix::account::{Account, Charge, Kept, Setting};
use unix::descriptor::Descriptor;
use unix::file::{CloseListener, FileObject, OpenFile};
use unix::poll::{PollQueue, Readiness, Registration, until_ready_or_deadline};
use unix::sync::{SpinLock, delay};
use unix::vfs::OpenFlags;
use unix::{AttemptError, Environment, Error, Result};

/// Locked while an instance is added to another one, or a file to an instance that others watch.
static NESTING: SpinLock<()> = SpinLock::new(());

/// An epoll instance.
pub(crate) struct Epoll {
    this: Weak<Epoll>,
    state: SpinLock<State>,
    /// The queue of the threads that wait for this instance.
    queue: PollQueue,
    /// The account of the user that made the instance. Its watches are charged to this account.
    account: Arc<Account>,
}

#[derive(Default)]
struct State {
    /// The watched files, by descriptor and description: one description may be watched through
    /// several descriptors.
    items: BTreeMap<(Descriptor, u64), Arc<EpollItem>>,
    /// Items that may be ready, each at most once.
    ready: VecDeque<Arc<EpollItem>>,
    /// Items whose files may become ready without waking a waiter, because a time has come.
    timed: Vec<Arc<EpollItem>>,
    /// The items by which other instances watch this one, and some that have been removed.
    watchers: Vec<Weak<EpollItem>>,
}

/// A file that an instance watches. The item is also the waker in the file's queue: when woken, it
/// enters the instance's ready list.
pub(crate) struct EpollItem {
    epoll: Weak<Epoll>,
    key: (Descriptor, u64),
    /// The watched file; a weak reference, since watching does not keep a file open.
    file: Weak<OpenFile>,
    /// Whether the watched file is itself an epoll instance.
    nested: bool,
    settings: SpinLock<Current>,
    registration: SpinLock<Option<Registration>>,
    /// Whether the item is on the ready list; changed only under the instance's lock.
    queued: AtomicBool,
    _charge: Charge,
}

/// The settings of an item, and how often they were set.
#[derive(Clone, Copy)]
struct Current {
    settings: EpollSettings,
    version: u64,
}

/// For which events a file is watched, and how they are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EpollSettings {
    /// The events of interest; errors and hang-ups are always reported.
    pub(crate) interest: Readiness,
    /// A value of the program's, which is returned with each event.
    pub(crate) data: u64,
    /// Report only changes (EPOLLET).
    pub(crate) edge: bool,
    /// Report one event, and then none until the settings are changed (EPOLLONESHOT).
    pub(crate) once: bool,
    /// An event was reported, and [`once`](Self::once) forbids another one.
    pub(crate) disarmed: bool,
}

/// An event that epoll_wait(2) reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpollEvent {
    /// The events for which the file is ready.
    pub(crate) ready: Readiness,
    /// The value that the program gave for the file ([`EpollSettings::data`]).
    pub(crate) data: u64,
}

impl Epoll {
    /// Makes an epoll instance of this user, as an open file.
    pub(crate) fn create(account: Arc<Account>) -> Arc<OpenFile> {
        let epoll = Arc::new_cyclic(|this: &Weak<Epoll>| Epoll {
            this: this.clone(),
            state: SpinLock::default(),
            queue: PollQueue::new(),
            account,
        });
        OpenFile::of_object(epoll, OpenFlags::READ_WRITE)
    }

    /// Adds a file to the watched ones (EPOLL_CTL_ADD). `EEXIST` if it is watched already, `EPERM`
    /// if it is always ready, `EINVAL` and `ELOOP` for instances that would watch themselves, be
    /// nested too deeply, or make too many wakeup paths of a file, `ENOSPC` for more files than the
    /// user may watch.
    pub(crate) fn add(
        &self,
        descriptor: Descriptor,
        file: &Arc<OpenFile>,
        settings: EpollSettings,
    ) -> Result<()> {
        let queue = file.queue().ok_or(Error::EPERM)?;
        let inner = file.object_as::<Epoll>();
        if inner.as_ref().is_some_and(|inner| core::ptr::eq(&**inner, self)) {
            return Err(Error::EINVAL);
        }
        // Only one instance is nested at a time. Otherwise two threads could make two instances
        // watch each other, and a change would be reported from one to the other without end.
        let _nesting = (inner.is_some() || self.is_watched()).then(|| NESTING.lock());
        nesting::check(self, file)?;
        delay("epoll may be added");
        let key = (descriptor, file.id());
        if self.state.lock().items.contains_key(&key) {
            return Err(Error::EEXIST);
        }
        let most = self.account.settings().get(Setting::PolledFiles);
        let charge = self.account.charge(Kept::PolledFiles, 1, |sum| sum <= most);
        let item = Arc::new(EpollItem {
            epoll: self.this.clone(),
            key,
            file: Arc::downgrade(file),
            nested: inner.is_some(),
            settings: SpinLock::new(Current { settings, version: 0 }),
            registration: SpinLock::new(None),
            queued: AtomicBool::new(false),
            _charge: charge.ok_or(Error::ENOSPC)?,
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
        delay("epoll adds");
        let registration = queue.register(settings.interest, &Waker::from(item.clone()));
        *item.registration.lock() = Some(registration);
        let listener: Weak<EpollItem> = Arc::downgrade(&item);
        file.add_close_listener(listener);
        if let Some(inner) = inner {
            let mut state = inner.state.lock();
            state.watchers.retain(|watcher| watcher.strong_count() > 0);
            state.watchers.push(Arc::downgrade(&item));
        }
        if !self.has(&item) {
            // The item was removed before its waker could be registered.
            item.unregister(Some(queue));
        }
        item.check(file);
        Ok(())
    }

    /// Changes the settings of a watched file (EPOLL_CTL_MOD), which can then be reported again.
    pub(crate) fn modify(
        &self,
        descriptor: Descriptor,
        file: &Arc<OpenFile>,
        settings: EpollSettings,
    ) -> Result<()> {
        let item = self.state.lock().items.get(&(descriptor, file.id())).cloned().ok_or(Error::ENOENT)?;
        {
            let mut current = item.settings.lock();
            *current = Current { settings, version: current.version + 1 };
        }
        let registration = *item.registration.lock();
        if let (Some(queue), Some(registration)) = (file.queue(), registration) {
            queue.set_interest(registration, settings.interest);
        }
        item.check(file);
        Ok(())
    }

    /// Removes a file from the watched ones (EPOLL_CTL_DEL).
    pub(crate) fn remove(&self, descriptor: Descriptor, file: &Arc<OpenFile>) -> Result<()> {
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

    /// Waits for events, at most `limit`, until `deadline`; returns none when that has passed.
    pub(crate) async fn wait(
        &self,
        environment: &dyn Environment,
        limit: usize,
        deadline: Option<Duration>,
    ) -> Vec<EpollEvent> {
        let mut events = self.harvest(limit);
        if !events.is_empty() || deadline.is_some_and(|deadline| deadline <= environment.monotonic()) {
            return events;
        }
        let left = || !self.state.lock().ready.is_empty();
        loop {
            let waited = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
                let found = self.harvest(limit);
                if found.is_empty() {
                    return Err((
                        AttemptError::WouldBlock,
                        self.next_change().into_iter().chain(deadline).min(),
                    ));
                }
                Ok(found)
            })
            .exclusive(Some(&left))
            .await;
            events = waited.unwrap_or_default();
            if !events.is_empty() || deadline.is_some_and(|deadline| deadline <= environment.monotonic()) {
                return events;
            }
        }
    }

    /// Whether the instance still has this item.
    fn has(&self, item: &EpollItem) -> bool {
        self.state.lock().items.get(&item.key).is_some_and(|known| core::ptr::eq(&**known, item))
    }

    /// Reports the events of files that are ready. Each item of the ready list is checked once.
    /// Other callers may do so at the same time. A level-triggered item stays at the end of the
    /// list until its file is found not to be ready, so that every caller finds it there.
    pub(crate) fn harvest(&self, limit: usize) -> Vec<EpollEvent> {
        self.queue_due_items(&mut Look::default());
        let mut events = Vec::new();
        let mut looks = self.state.lock().ready.len();
        while events.len() < limit && looks > 0 {
            let items: Vec<_> = {
                let mut state = self.state.lock();
                let count = looks.min(limit - events.len()).min(state.ready.len());
                let items: Vec<_> = state.ready.drain(..count).collect();
                for item in &items {
                    match item.settings.lock().settings {
                        EpollSettings { once: false, edge: false, .. } => state.ready.push_back(item.clone()),
                        // The flag is cleared before the file is looked at, so that a change after
                        // the look queues the item again.
                        _ => item.queued.store(false, Ordering::Relaxed),
                    }
                }
                items
            };
            if items.is_empty() {
                break;
            }
            looks -= items.len();
            let mut look = Look::default();
            for item in items {
                let Some(file) = item.file.upgrade() else { continue };
                let Current { settings, version } = *item.settings.lock();
                let ready = settings.find(look.readiness(&item, &file));
                delay("epoll reports");
                if ready.is_empty() {
                    self.is_not_ready(&item, &file);
                } else if !settings.once || item.disarm(version) {
                    events.push(EpollEvent { ready, data: settings.data });
                }
            }
        }
        events
    }

    /// Removes an item from the ready list whose file was found not to be ready, unless it has
    /// become ready since.
    fn is_not_ready(&self, item: &Arc<EpollItem>, file: &OpenFile) {
        {
            let mut state = self.state.lock();
            if !item.queued.swap(false, Ordering::Relaxed) {
                return;
            }
            state.ready.retain(|other| !Arc::ptr_eq(other, item));
        }
        // A change that came before the item was removed from the list did not queue it, so look at
        // the file again.
        item.check(file);
    }

    /// Queues the items of files that became ready because a time has come: such files wake no
    /// waiter. Returns whether the instance has items of such files.
    fn queue_due_items(&self, look: &mut Look) -> bool {
        let mut found = false;
        for item in self.timed_items() {
            let Some(file) = item.file.upgrade() else { continue };
            let settings = item.settings();
            if !settings.find(look.readiness(&item, &file)).is_empty() {
                item.wake();
                found = true;
            }
        }
        found
    }

    /// For what the instance itself is ready, as part of a look at several instances.
    fn look(&self, look: &mut Look) -> Readiness {
        let due = self.queue_due_items(look);
        let ready: Vec<_> = self.state.lock().ready.iter().cloned().collect();
        let found = due
            || ready.iter().any(|item| {
                let settings = item.settings();
                item.file.upgrade().is_some_and(|file| !settings.find(look.readiness(item, &file)).is_empty())
            });
        if found { Readiness::READ } else { Readiness::empty() }
    }

    /// The items whose files may become ready without waking a waiter, because a time has come.
    fn timed_items(&self) -> Vec<Arc<EpollItem>> {
        self.state.lock().timed.clone()
    }

    /// All items of the instance.
    fn items(&self) -> Vec<Arc<EpollItem>> {
        self.state.lock().items.values().cloned().collect()
    }

    /// Whether another epoll instance watches this one.
    fn is_watched(&self) -> bool {
        !self.watchers().is_empty()
    }

    /// The files that are watched: descriptor, open file and settings.
    pub(crate) fn watched(&self) -> Vec<(Descriptor, Arc<OpenFile>, EpollSettings)> {
        let items: Vec<_> = self.state.lock().items.values().cloned().collect();
        let shown = |item: &Arc<EpollItem>| Some((item.key.0, item.file()?, item.settings()));
        items.iter().filter_map(shown).collect()
    }

    /// The epoll instances that watch this one.
    fn watchers(&self) -> Vec<Arc<Epoll>> {
        let items: Vec<_> = self.state.lock().watchers.iter().filter_map(Weak::upgrade).collect();
        items.iter().filter_map(|item| item.instance()).collect()
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
    /// The watched file; `None` if it was closed.
    fn file(&self) -> Option<Arc<OpenFile>> {
        self.file.upgrade()
    }

    /// The watched file as an epoll instance; `None` if it is none.
    fn watched_instance(&self, file: &OpenFile) -> Option<Arc<Epoll>> {
        if self.nested { file.object_as() } else { None }
    }

    /// The instance to which this item belongs; `None` if the item was removed.
    fn instance(&self) -> Option<Arc<Epoll>> {
        self.epoll.upgrade().filter(|epoll| epoll.has(self))
    }

    /// Queues the item if its file is ready now.
    fn check(self: &Arc<Self>, file: &OpenFile) {
        // The item's lock is not held here, because asking a watched instance may wake this item.
        let settings = self.settings();
        if !settings.find(file.readiness()).is_empty() {
            self.clone().wake();
        }
    }

    fn settings(&self) -> EpollSettings {
        self.settings.lock().settings
    }

    /// Whether this caller may report a one-shot item. Several callers may have found it ready with
    /// settings of this version; only the first one reports it.
    fn disarm(&self, version: u64) -> bool {
        let mut current = self.settings.lock();
        let reports = current.version == version && !current.settings.disarmed;
        current.settings.disarmed |= reports;
        reports
    }

    fn unregister(&self, queue: Option<&PollQueue>) {
        if let (Some(queue), Some(registration)) = (queue, self.registration.lock().take()) {
            queue.unregister(registration);
        }
    }

    /// The items by which epoll instances watch an open file description.
    fn all_of(file: &OpenFile) -> Vec<Arc<EpollItem>> {
        let listeners = file.close_listeners().into_iter();
        listeners.filter_map(|listener| (listener as Arc<dyn Any + Send + Sync>).downcast().ok()).collect()
    }
}

impl CloseListener for EpollItem {
    fn closed(&self, queue: Option<&PollQueue>) {
        if let Some(epoll) = self.epoll.upgrade() {
            epoll.take(self.key);
        }
        self.unregister(queue);
    }
}

impl Wake for EpollItem {
    fn wake(self: Arc<Self>) {
        let Some(epoll) = self.epoll.upgrade() else { return };
        if self.settings().disarmed {
            return;
        }
        let mut state = epoll.state.lock();
        // Do not queue the item if it was removed meanwhile.
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
        Look::default().readiness_of(self)
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn next_change(&self) -> Option<Duration> {
        Look::default().next_change(self)
    }

    fn changes_by_itself(&self) -> bool {
        true
    }

    fn label(&self) -> &'static str {
        "anon_inode:[eventpoll]"
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
