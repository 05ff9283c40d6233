//! Threads of a server that root has started, and what each has for itself ([`Local`]).
//!
//! A thread's stack lies in a slot of its own above an unmapped page: root ends a server whose
//! thread runs over its stack, as for every wrong access. What the thread runs and what it returns
//! lie at the stack's upper end, so that making a thread needs no other memory.
//!
//! Nothing of a thread can be freed while it might still run. [`JoinHandle::join`] waits until it
//! has ended, lets root delete it, and frees its stack. A thread whose handle was dropped puts
//! itself on a list when it has ended, and is freed when the next one is made.

mod ending;
mod local;
mod stacks;

pub use local::Local;

use crate::root::{self, Status};
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use ending::{Ending, Told};
use l4::ipc::{self, Message};
use l4::x2::ThreadId;
use l4::x2::control::UNCHANGED;
use l4::{start, thread, utcb};
use stacks::Slot;

/// Bytes of stack of a thread unless its maker says otherwise.
pub const STACK_SIZE: usize = 64 << 10;
/// The most that a thread can have.
pub const STACK_MAXIMUM: usize = stacks::LARGEST as usize;

/// The state of a thread that does not depend on the type of its result.
struct Header {
    ending: Ending,
    slot: Slot,
    /// The thread's id, set before it says that it has ended.
    id: AtomicU64,
    /// The next on the list of threads that have ended and that no thread joins.
    next: AtomicPtr<Header>,
}

/// What lies at the upper end of a thread's stack. The result is read and written as `ending` says.
#[repr(C)]
struct Packet<T> {
    header: Header,
    result: UnsafeCell<Option<T>>,
}

/// A [`Packet`] with what the thread runs, which it takes out first.
#[repr(C)]
struct Start<F, T> {
    packet: Packet<T>,
    main: UnsafeCell<Option<F>>,
}

/// Threads that have ended and that no thread waits for.
static ENDED: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());

/// A thread. Dropping the handle lets it run on alone.
pub struct JoinHandle<T> {
    id: ThreadId,
    packet: *mut Packet<T>,
}

// SAFETY: what it points to is shared with the thread as `Ending` says; the result changes hands.
#[allow(unsafe_code, reason = "see above")]
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: through a shared handle one only reads the id.
#[allow(unsafe_code, reason = "see above")]
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Runs `main` in a new thread of this server, which lives where the caller does, with a stack of
/// [`STACK_SIZE`].
///
/// # Errors
/// Those of [`spawn_with_stack`].
pub fn spawn<F, T>(main: F) -> Result<JoinHandle<T>, Status>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_with_stack(STACK_SIZE, main)
}

/// [`spawn`] with another stack, in bytes; `main` and its result may take half of it.
///
/// # Errors
/// `InvalidArgument`: the stack is larger than [`STACK_MAXIMUM`], or too small. `QuotaExceeded`: as
/// many threads, or as much memory, as the configuration allows. `NoMemory`.
#[allow(unsafe_code, reason = "a stack is no Rust object")]
pub fn spawn_with_stack<F, T>(stack: usize, main: F) -> Result<JoinHandle<T>, Status>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    reap();
    let slot = Slot::take(stack as u64)?;
    let align = align_of::<Start<F, T>>().max(16) as u64;
    let place = (slot.end() - size_of::<Start<F, T>>() as u64) & !(align - 1);
    if place < slot.begin() + slot.size() / 2 {
        slot.give_back();
        return Err(Status::InvalidArgument);
    }
    let header =
        Header { ending: Ending::new(), slot, id: AtomicU64::new(0), next: AtomicPtr::new(ptr::null_mut()) };
    let packet = Packet { header, result: UnsafeCell::new(None) };
    let (start, words) = (place as *mut Start<F, T>, place - 16);
    // SAFETY: both places lie in the slot, one below the other, and are aligned; root has just
    // mapped it for this call alone.
    unsafe {
        start.write(Start { packet, main: UnsafeCell::new(Some(main)) });
        (words as *mut [u64; 2]).write([place, run::<F, T> as *const () as u64]);
    }
    // SAFETY: `begin_on_stack` takes the two words from this stack, which nothing else uses.
    match unsafe { root::create_thread(begin_on_stack as *const () as u64, words) } {
        Ok(id) => Ok(JoinHandle { id, packet: start.cast() }),
        Err(error) => {
            // SAFETY: no thread runs on the stack, and there is no other reference to it.
            unsafe { start.drop_in_place() };
            slot.give_back();
            Err(error)
        }
    }
}

/// Where a thread begins: on its stack lie the argument and the address of its first function.
#[allow(unsafe_code, reason = "the kernel enters it with nothing but a stack")]
#[unsafe(naked)]
unsafe extern "C" fn begin_on_stack() -> ! {
    core::arch::naked_asm!("pop rdi", "pop rax", "and rsp, -16", "xor ebp, ebp", "cld", "call rax", "ud2")
}

#[allow(unsafe_code, reason = "what the thread runs is at the end of its stack")]
extern "C" fn run<F: FnOnce() -> T, T>(start: *const Start<F, T>) -> ! {
    {
        // SAFETY: the thread's maker has written it, and it is not freed before the thread says
        // that it has ended.
        let start = unsafe { &*start };
        // SAFETY: only the thread itself touches `main`.
        let main = unsafe { &mut *start.main.get() }.take();
        let result = main.map(|main| main());
        local::drop_all();
        // SAFETY: nothing else touches the result before the thread says that it has ended.
        unsafe { *start.packet.result.get() = result };
        start.packet.header.id.store(utcb::my_global_id().raw(), Ordering::Relaxed);
    }
    // SAFETY: as above. From here on the thread holds nothing that it would have to give back: it
    // may be deleted at any moment once it has said that it has ended.
    let packet = unsafe { &(*start).packet };
    match packet.header.ending.end_thread() {
        Told::None => {}
        Told::Joiner(joiner) => {
            // The joiner waits for this message, or has ended.
            let _ = ipc::send(joiner, Message::new(0));
        }
        Told::Alone => {
            // SAFETY: the former owner of the handle does not touch the result any more.
            unsafe { *packet.result.get() = None };
            local::drop_all();
            push(&packet.header);
        }
    }
    start::halt()
}

/// Puts a thread on the list of those that have ended. The thread itself, as its last act.
fn push(header: &Header) {
    let this = ptr::from_ref(header).cast_mut();
    let mut first = ENDED.load(Ordering::Relaxed);
    loop {
        header.next.store(first, Ordering::Relaxed);
        match ENDED.compare_exchange_weak(first, this, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Frees what is left of the threads on the list.
#[allow(unsafe_code, reason = "the headers lie on the threads' stacks")]
fn reap() {
    let mut next = ENDED.swap(ptr::null_mut(), Ordering::Acquire);
    // SAFETY: a thread on the list has ended, and the thread that takes the list is the only one to
    // free what is on it.
    while let Some(header) = unsafe { next.as_ref() } {
        next = header.next.load(Ordering::Relaxed);
        free(header);
    }
}

/// Deletes a thread that has ended, and frees its stack, where `header` lies.
fn free(header: &Header) {
    let (id, slot) = (ThreadId::from_raw(header.id.load(Ordering::Relaxed)), header.slot);
    // Root knows the thread, and only this call deletes it. If root did not know it, its stack
    // would stay taken.
    if root::delete_thread(id).is_ok() {
        slot.give_back();
    }
}

impl<T> JoinHandle<T> {
    /// The thread's id.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Lets the thread live on another processor from now on. Only the server's first thread, which
    /// is the scheduler of the others, can do that.
    ///
    /// # Errors
    /// `InvalidArgument`: the processor does not exist, or the caller is not the first thread.
    pub fn place(&self, processor: u64) -> Result<(), Status> {
        let done = thread::schedule(self.id, UNCHANGED, processor, UNCHANGED, UNCHANGED);
        done.map(drop).map_err(|_| Status::InvalidArgument)
    }

    /// Waits until the thread has ended: what it has returned. The caller receives nothing else
    /// meanwhile; what the thread sends to it is lost.
    #[allow(unsafe_code, reason = "the result changes hands")]
    pub fn join(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the packet lives until `free`.
        let packet = unsafe { &*this.packet };
        packet.header.ending.join(utcb::my_global_id(), || {
            let _ = ipc::receive(this.id);
        });
        // SAFETY: the thread has ended, and the result belongs to the handle.
        let result = unsafe { &mut *packet.result.get() }.take();
        free(&packet.header);
        result.expect("a thread that has ended has a result")
    }
}

impl<T> Drop for JoinHandle<T> {
    #[allow(unsafe_code, reason = "the result changes hands")]
    fn drop(&mut self) {
        // SAFETY: the packet lives until the thread has ended and is freed.
        let packet = unsafe { &*self.packet };
        if packet.header.ending.drop_handle() {
            // SAFETY: the thread has ended, and the result belongs to the handle.
            unsafe { *packet.result.get() = None };
            free(&packet.header);
        }
    }
}
