//! Threads of a server that root has started, and thread-local values ([`Local`]).
//!
//! A thread's stack lies in a slot of its own, above an unmapped page. If a thread overflows its
//! stack, root ends the server, as after every wrong access. The closure that the thread runs and
//! its result lie at the upper end of the stack, so a new thread needs no other memory.
//!
//! Memory of a thread must not be freed while the thread might still run. [`JoinHandle::join`]
//! waits until the thread has ended, has root delete it, and frees its stack. A thread whose handle
//! was dropped puts itself on a list when it ends, and is freed when the next thread is made.

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

/// The default size in bytes of a thread's stack.
pub const STACK_SIZE: usize = 64 << 10;
/// The maximum size in bytes of a thread's stack.
pub const STACK_MAXIMUM: usize = stacks::LARGEST as usize;

/// The state of a thread that does not depend on the type of its result.
struct Header {
    ending: Ending,
    slot: Slot,
    /// The thread's id. It is set before the thread can say that it has ended.
    id: AtomicU64,
    /// The next thread on the list of threads that have ended and that no thread will join.
    next: AtomicPtr<Header>,
}

/// The data at the upper end of a thread's stack. `ending` says which side may access the result.
#[repr(C)]
struct Packet<T> {
    header: Header,
    result: UnsafeCell<Option<T>>,
}

/// A [`Packet`] and the closure that the thread runs, which the thread first takes out.
#[repr(C)]
struct Start<F, T> {
    packet: Packet<T>,
    main: UnsafeCell<Option<F>>,
}

/// The list of threads that have ended and that no thread will join.
static ENDED: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());

/// A handle of a thread. If it is dropped, the thread continues to run.
pub struct JoinHandle<T> {
    id: ThreadId,
    packet: *mut Packet<T>,
}

// SAFETY: the packet is shared with the thread under the rules of `Ending`; the result is moved
// between threads, so it is `Send`.
#[allow(unsafe_code, reason = "see above")]
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: through a shared reference only the id can be read.
#[allow(unsafe_code, reason = "see above")]
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Runs `main` in a new thread of this server, on the caller's processor, with a stack of
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

/// Runs `main` in a new thread like [`spawn`], with a stack of `stack` bytes, of which `main` and
/// its result may take half.
///
/// # Errors
/// `InvalidArgument`: the stack is larger than [`STACK_MAXIMUM`], or too small. `QuotaExceeded`:
/// the server would have more threads or memory than the configuration allows. `NoMemory`: memory
/// is short.
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
    // SAFETY: both places lie in the slot, do not overlap, and are aligned. Root has just mapped
    // the slot for this call alone.
    unsafe {
        start.write(Start { packet, main: UnsafeCell::new(Some(main)) });
        (words as *mut [u64; 2]).write([place, run::<F, T> as *const () as u64]);
    }
    // SAFETY: `begin_on_stack` needs only the two words on this stack, which no other code uses.
    match unsafe { root::create_thread(begin_on_stack as *const () as u64, words) } {
        Ok(id) => Ok(JoinHandle { id, packet: start.cast() }),
        Err(error) => {
            // SAFETY: no thread runs on the stack, and there are no other references to it.
            unsafe { start.drop_in_place() };
            slot.give_back();
            Err(error)
        }
    }
}

/// The first instructions of a thread. The argument and the address of the first function are on
/// its stack.
#[allow(unsafe_code, reason = "the kernel enters it with nothing but a stack")]
#[unsafe(naked)]
unsafe extern "C" fn begin_on_stack() -> ! {
    core::arch::naked_asm!("pop rdi", "pop rax", "and rsp, -16", "xor ebp, ebp", "cld", "call rax", "ud2")
}

#[allow(unsafe_code, reason = "what the thread runs is at the end of its stack")]
extern "C" fn run<F: FnOnce() -> T, T>(start: *const Start<F, T>) -> ! {
    {
        // SAFETY: the creator of the thread has written the structure, which is not freed before
        // the thread says that it has ended.
        let start = unsafe { &*start };
        // SAFETY: only the thread itself accesses `main`.
        let main = unsafe { &mut *start.main.get() }.take();
        let result = main.map(|main| main());
        local::drop_all();
        // SAFETY: no other thread accesses the result before this thread says that it has ended.
        unsafe { *start.packet.result.get() = result };
        start.packet.header.id.store(utcb::my_global_id().raw(), Ordering::Relaxed);
    }
    // SAFETY: the structure is not freed before the thread says that it has ended. From here on the
    // thread owns nothing that must be dropped, so it may be deleted at any moment after that.
    let packet = unsafe { &(*start).packet };
    match packet.header.ending.end_thread() {
        Told::None => {}
        Told::Joiner(joiner) => {
            // The joiner waits for this message; an error means that it has ended.
            let _ = ipc::send(joiner, Message::new(0));
        }
        Told::Alone => {
            // SAFETY: the handle was dropped, so no other thread accesses the result.
            unsafe { *packet.result.get() = None };
            local::drop_all();
            push(&packet.header);
        }
    }
    start::halt()
}

/// Puts a thread on the list of those that have ended. The thread does this itself, last of all.
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

/// Frees the threads on the list.
#[allow(unsafe_code, reason = "the headers lie on the threads' stacks")]
fn reap() {
    let mut next = ENDED.swap(ptr::null_mut(), Ordering::Acquire);
    // SAFETY: the threads on the list have ended, and only the thread that has taken the list frees
    // them.
    while let Some(header) = unsafe { next.as_ref() } {
        next = header.next.load(Ordering::Relaxed);
        free(header);
    }
}

/// Deletes a thread that has ended, and frees its stack, which contains `header`.
fn free(header: &Header) {
    let (id, slot) = (ThreadId::from_raw(header.id.load(Ordering::Relaxed)), header.slot);
    // Root knows the thread, and only this call deletes it. If root refused, the stack would stay
    // in use.
    if root::delete_thread(id).is_ok() {
        slot.give_back();
    }
}

impl<T> JoinHandle<T> {
    /// The id of the thread.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Moves the thread to another processor. Only the server's first thread, which is the
    /// scheduler of the others, can do that.
    ///
    /// # Errors
    /// `InvalidArgument`: the processor does not exist, or the caller is not the first thread.
    pub fn place(&self, processor: u64) -> Result<(), Status> {
        let done = thread::schedule(self.id, UNCHANGED, processor, UNCHANGED, UNCHANGED);
        done.map(drop).map_err(|_| Status::InvalidArgument)
    }

    /// Waits until the thread has ended. Returns its result. Meanwhile the caller receives no other
    /// messages, and messages of the thread to it are lost.
    #[allow(unsafe_code, reason = "the result changes hands")]
    pub fn join(self) -> T {
        let this = ManuallyDrop::new(self);
        // SAFETY: the packet exists until `free` is called.
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
        // SAFETY: the packet exists until the thread has ended and is freed.
        let packet = unsafe { &*self.packet };
        if packet.header.ending.drop_handle() {
            // SAFETY: the thread has ended, and the result belongs to the handle.
            unsafe { *packet.result.get() = None };
            free(&packet.header);
        }
    }
}
