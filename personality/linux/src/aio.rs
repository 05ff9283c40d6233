//! Contexts of asynchronous I/O (io_setup(2)): the results of operations that a program has
//! submitted, until it takes them.
//!
//! A program knows a context by the address of a mapping, where Linux has a ring of results that
//! libraries may read. Here the mapping has only zeros, so that a library makes the call. The
//! mapping is of a file in memory, and the context exists as long as that file: until the context
//! is destroyed, or its address space is.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use unix::account::{Account, Charge};
use unix::file::{CloseListener, OpenFile};
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;
use unix::{AttemptError, Error, Result};

/// How many operations the contexts of all programs may have (aio-max-nr).
pub(crate) const OPERATIONS_MAXIMUM: u64 = 65536;
/// The bytes that are charged for each operation of a context.
const OPERATION_BYTES: u64 = 64;

/// The result of an operation (struct io_event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The word that the program has given with the operation.
    pub(crate) data: u64,
    /// The address of the operation's struct iocb.
    pub(crate) operation: u64,
    /// What the operation returned, or a negative error number.
    pub(crate) result: u64,
}

/// All contexts, by the ids of the files whose mappings they are known by.
#[derive(Default)]
pub(crate) struct Contexts(SpinLock<State>);

#[derive(Default)]
struct State {
    contexts: BTreeMap<u64, Arc<Context>>,
    operations: u64,
}

impl Contexts {
    /// Makes a context for as many operations as `limit`, which ends with `file`. `EAGAIN` if there
    /// are too many, `ENOMEM`.
    pub(crate) fn add(self: &Arc<Self>, account: &Arc<Account>, limit: u32, file: &OpenFile) -> Result<()> {
        let charge = account.charge_memory(u64::from(limit) * OPERATION_BYTES).ok_or(Error::ENOMEM)?;
        let context = Arc::new(Context {
            contexts: Arc::downgrade(self),
            id: file.id(),
            limit,
            events: SpinLock::new(VecDeque::new()),
            queue: PollQueue::new(),
            _charge: charge,
        });
        {
            let mut state = self.0.lock();
            if state.operations + u64::from(limit) > OPERATIONS_MAXIMUM {
                return Err(Error::EAGAIN);
            }
            state.operations += u64::from(limit);
            state.contexts.insert(file.id(), context.clone());
        }
        let listener: Weak<dyn CloseListener> = Arc::<Context>::downgrade(&context);
        file.add_close_listener(listener);
        Ok(())
    }

    /// The context that ends with `file`; `EINVAL` if there is none.
    pub(crate) fn get(&self, file: &OpenFile) -> Result<Arc<Context>> {
        self.0.lock().contexts.get(&file.id()).cloned().ok_or(Error::EINVAL)
    }

    fn remove(&self, id: u64) {
        let mut state = self.0.lock();
        let context = state.contexts.remove(&id);
        state.operations -= context.as_ref().map_or(0, |context| u64::from(context.limit));
        drop(state);
        // Callers that wait for results find that there is no context any more.
        if let Some(context) = context {
            context.queue.wake(Readiness::READ);
        }
    }
}

/// A context of asynchronous I/O.
pub(crate) struct Context {
    contexts: Weak<Contexts>,
    id: u64,
    /// How many operations the context may have.
    limit: u32,
    /// The results that the program has not taken.
    events: SpinLock<VecDeque<Event>>,
    queue: PollQueue,
    _charge: Charge,
}

impl Context {
    /// Checks that there is room for the result of one more operation. `EAGAIN`.
    pub(crate) fn check_room(&self) -> Result<()> {
        let mut events = self.events.lock();
        if events.len() >= self.limit as usize {
            return Err(Error::EAGAIN);
        }
        events.try_reserve(1).map_err(|_| Error::EAGAIN)
    }

    /// Adds the result of an operation.
    pub(crate) fn complete(&self, event: Event) {
        self.events.lock().push_back(event);
        self.queue.wake(Readiness::READ);
    }

    /// Waits until there are results, and takes the oldest. The future may be dropped. `EINVAL` if
    /// the context has been destroyed meanwhile.
    pub(crate) async fn take(&self) -> Result<Event> {
        let attempt = || {
            if let Some(event) = self.try_take() {
                return Ok(event);
            }
            let exists =
                self.contexts.upgrade().is_some_and(|all| all.0.lock().contexts.contains_key(&self.id));
            Err(if exists { AttemptError::WouldBlock } else { Error::EINVAL.into() })
        };
        until_ready(&self.queue, Readiness::READ, attempt).await.map_err(|_| Error::EINVAL)
    }

    /// Takes the oldest result, if there is one.
    pub(crate) fn try_take(&self) -> Option<Event> {
        self.events.lock().pop_front()
    }

    /// Puts back a result that could not be given to the program.
    pub(crate) fn put_back(&self, event: Event) {
        self.events.lock().push_front(event);
    }
}

impl CloseListener for Context {
    fn closed(&self, _queue: Option<&PollQueue>) {
        if let Some(contexts) = self.contexts.upgrade() {
            contexts.remove(self.id);
        }
    }
}
