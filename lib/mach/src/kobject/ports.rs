//! The ports that belong to a task or a thread.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use super::{Kernel, Object, PortPersonality};
use crate::ipc::{Charge, Interruption, KernelPort, Name, Right, SendRight, Space};
use crate::machine::Machine;
use crate::task::Task;
use crate::thread::Thread;
use crate::{KernError, KernResult};

/// How many send rights `mach_ports_register` stores.
pub(super) const REGISTERED: usize = 4;

/// A special port, with its number in Mach's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The port by which the object is controlled.
    Kernel = 1,
    /// The port to which exceptions are sent.
    Exception = 3,
    /// The port of the server that a task knows first.
    Bootstrap = 4,
}

impl Which {
    pub(super) fn of(number: u32) -> KernResult<Self> {
        match number {
            1 => Ok(Self::Kernel),
            3 => Ok(Self::Exception),
            4 => Ok(Self::Bootstrap),
            _ => Err(KernError::InvalidArgument),
        }
    }
}

/// Another right to the port of a send right.
pub(super) fn copy<M: Machine>(right: &Right<M>) -> Right<M> {
    match right {
        Right::Send(right) => right.copy().map_or(Right::Dead, Right::Send),
        Right::Dead => Right::Dead,
        _ => Right::Null,
    }
}

/// The port of an object, and the special ports that a program can set.
struct Ports<M: Machine> {
    /// `None` after the object has ended.
    own: Option<KernelPort<M>>,
    /// What the object gets as its own port, if a program has set that.
    kernel: Option<Right<M>>,
    exception: Right<M>,
    bootstrap: Right<M>,
    registered: [Right<M>; REGISTERED],
    /// The addresses of emulated system calls, which a task shares with its children until one of
    /// them changes its own.
    emulation: Option<Arc<Emulation<M>>>,
    /// The name for debuggers, without the final zero.
    name: Vec<u8>,
}

/// The addresses at which emulated system calls continue.
struct Emulation<M: Machine> {
    /// The number of the first entry's call.
    first: i32,
    entries: Vec<u64>,
    /// The memory of the entries.
    _charge: Charge<M>,
}

impl<M: Machine> Ports<M> {
    fn new(own: KernelPort<M>) -> Self {
        Self {
            own: Some(own),
            kernel: None,
            exception: Right::Null,
            bootstrap: Right::Null,
            registered: Default::default(),
            emulation: None,
            name: Vec::new(),
        }
    }

    fn ended() -> Self {
        Self {
            own: None,
            kernel: None,
            exception: Right::Null,
            bootstrap: Right::Null,
            registered: Default::default(),
            emulation: None,
            name: Vec::new(),
        }
    }

    fn own_right(&self) -> Right<M> {
        self.own.as_ref().map_or(Right::Dead, KernelPort::send_right)
    }

    /// Gives a task that has the port that the object gets as its own already one more reference to
    /// it, and returns the name. `None`: the general way must be taken.
    fn add_own_reference(&self, space: &Space<M>) -> Option<Name> {
        let own = self.own.as_ref().filter(|_| self.kernel.is_none())?;
        own.add_reference(space)
    }

    /// Whether a task has a send right under this name to the port that the object gets as its own.
    fn is_own_name(&self, space: &Space<M>, name: Name) -> bool {
        match (&self.kernel, &self.own) {
            (None, Some(own)) => own.has_name(space, name),
            (Some(Right::Send(right)), _) => right.has_name(space, name),
            _ => false,
        }
    }

    fn special(&self, which: Which) -> Right<M> {
        match (which, &self.kernel) {
            (Which::Kernel, None) => self.own_right(),
            (Which::Kernel, Some(right)) => copy(right),
            (Which::Exception, _) => copy(&self.exception),
            (Which::Bootstrap, _) => copy(&self.bootstrap),
        }
    }

    /// Sets a special port. Returns the right that was there before.
    fn set_special(&mut self, which: Which, right: Right<M>) -> Right<M> {
        match which {
            Which::Kernel => self.kernel.replace(right).unwrap_or_default(),
            Which::Exception => core::mem::replace(&mut self.exception, right),
            Which::Bootstrap => core::mem::replace(&mut self.bootstrap, right),
        }
    }
}

/// The ports of a task, and its names for rights.
pub struct TaskPorts<M: Machine> {
    space: Arc<Space<M>>,
    ports: SpinLock<Ports<M>>,
    /// The time of day at which the task was made, in microseconds.
    pub(super) created: u64,
}

impl<M: Machine> TaskPorts<M> {
    /// Makes the ports of a task without a parent.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn new<P: PortPersonality<M>>(kernel: &Arc<Kernel<M, P>>) -> KernResult<Self> {
        let space = Space::new(kernel.ipc());
        let own = KernelPort::new(&space, kernel.server())?;
        Ok(Self { space, ports: SpinLock::new(Ports::new(own)), created: kernel.time_of_day() })
    }

    /// Makes the ports of a task that inherits the special ports of a parent.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub(super) fn of_child<P: PortPersonality<M>>(
        kernel: &Arc<Kernel<M, P>>,
        parent: &Self,
    ) -> KernResult<Self> {
        let child = Self::new(kernel)?;
        {
            let inherited = parent.ports.lock();
            let mut ports = child.ports.lock();
            ports.exception = copy(&inherited.exception);
            ports.bootstrap = copy(&inherited.bootstrap);
            ports.registered = inherited.registered.each_ref().map(copy);
            ports.emulation = inherited.emulation.clone();
        }
        Ok(child)
    }

    /// The task's names for rights.
    pub fn space(&self) -> &Arc<Space<M>> {
        &self.space
    }

    /// A send right to the port that the task gets as its own: `mach_task_self`.
    pub fn own_right(&self) -> Right<M> {
        self.special(Which::Kernel)
    }

    /// Gives the task a send right to the port that it gets as its own, and returns the name:
    /// `mach_task_self`.
    ///
    /// # Errors
    /// Those of [`Space::copyout_right`].
    pub fn name_self(&self) -> KernResult<Name> {
        let named = self.ports.lock().add_own_reference(&self.space);
        named.map_or_else(|| self.space.copyout_right(self.own_right()), Ok)
    }

    /// Whether a name of the task has a send right to the port that the task gets as its own.
    pub fn is_own_name(&self, name: Name) -> bool {
        self.ports.lock().is_own_name(&self.space, name)
    }

    /// Sets the bootstrap port.
    pub fn set_bootstrap(&self, right: Right<M>) {
        self.set_special(Which::Bootstrap, right);
    }

    /// A send right to the port that stands for the task.
    pub(super) fn port(&self) -> Right<M> {
        self.ports.lock().own_right()
    }

    pub(super) fn special(&self, which: Which) -> Right<M> {
        self.ports.lock().special(which)
    }

    pub(super) fn set_special(&self, which: Which, right: Right<M>) {
        // The right that was there before is dropped after the lock is released.
        let before = self.ports.lock().set_special(which, right);
        drop(before);
    }

    pub(super) fn registered(&self) -> [Right<M>; REGISTERED] {
        self.ports.lock().registered.each_ref().map(copy)
    }

    pub(super) fn register(&self, rights: [Right<M>; REGISTERED]) {
        let before = core::mem::replace(&mut self.ports.lock().registered, rights);
        drop(before);
    }

    /// Sets the task's name for debuggers.
    pub(super) fn set_name(&self, name: &[u8]) {
        self.ports.lock().name = name.to_vec();
    }

    /// The task's name for debuggers, of at most 63 bytes.
    pub fn name(&self) -> Vec<u8> {
        self.ports.lock().name.clone()
    }

    /// The address at which a system call with this number continues, if it is emulated.
    pub fn emulated(&self, number: i32) -> Option<u64> {
        let ports = self.ports.lock();
        let emulation = ports.emulation.as_ref()?;
        let place = usize::try_from(i64::from(number) - i64::from(emulation.first)).ok()?;
        emulation.entries.get(place).copied().filter(|&entry| entry != 0)
    }

    /// The number of the first emulated call, and the addresses from it on.
    pub(super) fn emulation(&self) -> (i32, Vec<u64>) {
        let emulation = self.ports.lock().emulation.clone();
        emulation.map_or((0, Vec::new()), |emulation| (emulation.first, emulation.entries.clone()))
    }

    /// Sets the addresses of the calls with the numbers from `first` on.
    ///
    /// # Errors
    /// `InvalidArgument`: the numbers of all emulated calls extend over more than `most`.
    /// `ResourceShortage`: no memory, or more than the task may use.
    pub(super) fn set_emulation(&self, first: i32, entries: &[u64], most: usize) -> KernResult {
        if entries.is_empty() {
            return Ok(());
        }
        let old = self.ports.lock().emulation.clone();
        let (old_first, old_entries) =
            old.as_ref().map_or((first, &[][..]), |old| (old.first, &old.entries[..]));
        let new_first = first.min(old_first);
        let end = |first: i32, count: usize| i64::from(first) + count as i64;
        let count = end(first, entries.len()).max(end(old_first, old_entries.len())) - i64::from(new_first);
        let count = usize::try_from(count).ok().filter(|&count| count <= most);
        let count = count.ok_or(KernError::InvalidArgument)?;
        let charge = self.space.charge(count * 8).ok_or(KernError::ResourceShortage)?;
        let mut all = alloc::vec![0; count];
        let mut put = |at: i32, part: &[u64]| {
            let place = (i64::from(at) - i64::from(new_first)) as usize;
            all[place..place + part.len()].copy_from_slice(part);
        };
        put(old_first, old_entries);
        put(first, entries);
        let new = Arc::new(Emulation { first: new_first, entries: all, _charge: charge });
        let before = self.ports.lock().emulation.replace(new);
        drop((before, old));
        Ok(())
    }

    /// Makes the task's port stand for the task.
    pub(super) fn enable<P: PortPersonality<M>>(&self, task: &Arc<Task<M, P>>) {
        let object = Arc::new(Object::Task(task.clone()));
        if let Some(own) = &self.ports.lock().own {
            own.enable(object);
        }
    }

    /// Ends the ports and all rights of a task that has ended. A personality calls it from
    /// [`task_ended`](crate::Personality::task_ended).
    pub fn end(&self) {
        let ended = core::mem::replace(&mut *self.ports.lock(), Ports::ended());
        let object = ended.own.as_ref().and_then(KernelPort::disable);
        // The rights end before the object: it may hold the last reference to the task.
        drop(ended);
        self.space.terminate();
        drop(object);
    }
}

/// The ports of a thread, and what ends its waits.
pub struct ThreadPorts<M: Machine> {
    ports: SpinLock<Ports<M>>,
    /// Ends the thread's waits in `mach_msg`.
    pub interruption: Interruption,
    /// The time of day at which the thread was made, in microseconds.
    pub(super) created: u64,
}

impl<M: Machine> ThreadPorts<M> {
    /// Makes the ports of a thread of a task, whose account pays for them.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn new<P: PortPersonality<M>>(kernel: &Arc<Kernel<M, P>>, task: &TaskPorts<M>) -> KernResult<Self> {
        let own = KernelPort::new(&task.space, kernel.server())?;
        Ok(Self {
            ports: SpinLock::new(Ports::new(own)),
            interruption: Interruption::new(),
            created: kernel.time_of_day(),
        })
    }

    /// A send right to the port that the thread gets as its own: `mach_thread_self`.
    pub fn own_right(&self) -> Right<M> {
        self.special(Which::Kernel)
    }

    /// Gives the thread's task, whose names are `space`, a send right to the port that the thread
    /// gets as its own, and returns the name: `mach_thread_self`.
    ///
    /// # Errors
    /// Those of [`Space::copyout_right`].
    pub fn name_self(&self, space: &Space<M>) -> KernResult<Name> {
        let named = self.ports.lock().add_own_reference(space);
        named.map_or_else(|| space.copyout_right(self.own_right()), Ok)
    }

    /// Whether a name has a send right to the port that the thread gets as its own.
    pub fn is_own_name(&self, space: &Space<M>, name: Name) -> bool {
        self.ports.lock().is_own_name(space, name)
    }

    /// A send right to the port that stands for the thread.
    pub(super) fn port(&self) -> Right<M> {
        self.ports.lock().own_right()
    }

    pub(super) fn special(&self, which: Which) -> Right<M> {
        self.ports.lock().special(which)
    }

    pub(super) fn set_special(&self, which: Which, right: Right<M>) {
        let before = self.ports.lock().set_special(which, right);
        drop(before);
    }

    /// Sets the thread's name for debuggers.
    pub(super) fn set_name(&self, name: &[u8]) {
        self.ports.lock().name = name.to_vec();
    }

    /// The thread's name for debuggers.
    pub(super) fn name(&self) -> Vec<u8> {
        self.ports.lock().name.clone()
    }

    /// Makes the thread's port stand for the thread.
    pub(super) fn enable<P: PortPersonality<M>>(&self, thread: &Arc<Thread<M, P>>) {
        let object = Arc::new(Object::Thread(thread.clone()));
        if let Some(own) = &self.ports.lock().own {
            own.enable(object);
        }
    }

    /// Ends the ports of a thread that has ended. A personality calls it from
    /// [`thread_ended`](crate::Personality::thread_ended).
    pub fn end(&self) {
        let ended = core::mem::replace(&mut *self.ports.lock(), Ports::ended());
        let object = ended.own.as_ref().and_then(KernelPort::disable);
        drop(ended);
        drop(object);
    }
}

/// Whether a right is a send right, or no right.
pub(super) fn is_send_or_null<M: Machine>(right: &Right<M>) -> bool {
    matches!(right, Right::Null | Right::Dead | Right::Send(SendRight { .. }))
}
