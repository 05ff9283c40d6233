//! Partners for measurements: threads in this space and in others that share this program's memory.

use bench_framework::lengthen_timeslice;
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU32, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, space, start, utcb};
use x2::extension::{MapItem, MapOperation};
use x2::{Fpage, Rights, ThreadId};

const THREADS: usize = 48;
/// Where the UTCB of a partner in another space lies.
const UTCB_AREA: u64 = 0x7fff_8001_0000;

static STACKS: [start::Stack; THREADS] = [const { start::Stack::new() }; THREADS];
static USED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// Defined by the linker script; only their addresses mean something.
    static __program_start: u8;
    static __program_end: u8;
}

fn image() -> core::ops::Range<u64> {
    addr_of!(__program_start) as u64 & !0xfff..addr_of!(__program_end) as u64
}

/// Makes the whole program present, so that no measurement contains a page fault that it does not
/// mean, nor the end of a timeslice.
pub(crate) fn prepare() {
    lengthen_timeslice(utcb::my_global_id());
    for page in image().step_by(4096) {
        // SAFETY: within this program, whose bytes can all be read; the value means nothing.
        unsafe { (page as *const u8).read_volatile() };
    }
}

/// An id that no thread has, and its index.
pub(crate) fn new_id() -> (ThreadId, u32) {
    let index = USED.fetch_add(1, Ordering::Relaxed);
    assert!((index as usize) < THREADS, "at most {THREADS} partners");
    (ThreadId::global(kip().thread_info().user_base + 8 + index, 1).expect("a global id"), index)
}

/// Starts a new thread on the stack with that index. This thread is its pager.
pub(crate) fn start_at(id: ThreadId, index: u32, body: extern "C" fn() -> !) {
    let sp = addr_of!(STACKS[index as usize]) as u64 + start::STACK_SIZE as u64 - 8;
    ipc::send(id, Message::with_words(0, &[body as usize as u64, sp])).expect("it waits for its start");
}

/// A partner in this space.
pub(crate) fn here(body: extern "C" fn() -> !) -> ThreadId {
    let (id, index) = new_id();
    let me = utcb::my_global_id();
    thread::control(id, arguments(me, Some(own_utcb(index)))).expect("a new thread");
    start_at(id, index, body);
    lengthen_timeslice(id);
    id
}

/// Place for a further UTCB in this space, in another frame than this thread's.
fn own_utcb(index: u32) -> u64 {
    first_utcb() + (4 + u64::from(index)) * x2::utcb::SIZE
}

/// Place for a UTCB in the frame of this thread's UTCB, which holds no others. So no frame has to
/// be allocated for it: four UTCBs share a frame, and only the first of them needs a new one.
pub(crate) fn utcb_beside_own() -> u64 {
    first_utcb() + x2::utcb::SIZE
}

fn first_utcb() -> u64 {
    utcb::pointer() & !(x2::utcb::SIZE - 1)
}

/// Arguments that make an active thread in the space of `space`, or with no UTCB an inactive one.
pub(crate) fn arguments(space: ThreadId, utcb: Option<u64>) -> ThreadControl {
    let me = utcb::my_global_id();
    let pager = if utcb.is_some() { me } else { ThreadId::NIL };
    ThreadControl { space, scheduler: me, pager, utcb }
}

/// A new space that this program owns, with this program's memory, and its inactive first thread.
pub(crate) fn owned_space() -> (ThreadId, u32) {
    let (id, index) = new_id();
    thread::control(id, arguments(id, None)).expect("a new space");
    set_areas(id);
    extension::set_owner(id, utcb::my_global_id()).expect("the root task is privileged");
    let image = image();
    let target = Fpage::memory(image.start, 12).with_rights(Rights::ALL);
    let pages = (image.end - image.start).div_ceil(4096) as u32;
    let mut items = [MapItem::new(MapOperation::Map, target, pages, image.start)];
    extension::map_control(id, &mut items).expect("the program's memory");
    (id, index)
}

fn set_areas(space: ThreadId) {
    let areas = [Fpage::memory(kip().base(), 12), Fpage::memory(UTCB_AREA, 12)];
    space::control(space, 0, areas[0], areas[1], ThreadId::ANY).expect("the areas are valid");
}

/// Gives a new space its areas, and makes its first thread one that waits for its start.
pub(crate) fn arrange(id: ThreadId) {
    set_areas(id);
    thread::control(id, arguments(id, Some(UTCB_AREA))).expect("the thread");
}

/// Starts the first thread of a space of [`owned_space`]. This thread is its pager and exception
/// handler.
pub(crate) fn start_first((id, index): (ThreadId, u32), body: extern "C" fn() -> !) -> ThreadId {
    thread::control(id, arguments(id, Some(UTCB_AREA))).expect("the thread");
    extension::set_handlers(id, Some(utcb::my_global_id()), None).expect("the thread is owned");
    start_at(id, index, body);
    lengthen_timeslice(id);
    id
}

/// A partner in a space of its own, owned by this program.
pub(crate) fn elsewhere(body: extern "C" fn() -> !) -> ThreadId {
    start_first(owned_space(), body)
}
