//! Threads and spaces in numbers.

use bench_framework::lengthen_timeslice;
use core::ptr::addr_of;
use l4::console::kernel_statistic;
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, space, utcb};
use x2::extension::{MapItem, MapOperation};
use x2::kdebug::statistic;
use x2::{Fpage, Rights, ThreadId};

/// Threads that run at all have small stacks here.
pub(crate) const RUNNING: u64 = 1000;
const STACK: usize = 2048;

#[repr(C, align(4096))]
struct Stacks(core::cell::UnsafeCell<[[u8; STACK]; RUNNING as usize]>);

// SAFETY: nothing ever forms a reference to the content; each stack is used by the one thread that
// starts on it.
unsafe impl Sync for Stacks {}

static STACKS: Stacks = Stacks(core::cell::UnsafeCell::new([[0; STACK]; RUNNING as usize]));

/// Where the UTCB of a partner in another space lies.
const UTCB_AREA: u64 = 0x7fff_8000_0000;
/// log2 of the size of the area where so many threads have their UTCBs.
const MANY_UTCBS: u32 = 24;

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

/// Bytes of kernel memory in use.
pub(crate) fn kernel_memory() -> u64 {
    kernel_statistic(statistic::MEMORY).expect("booted with kdb=test")
}

/// The id of the user thread with this number, counted from the first number that is free at boot.
pub(crate) fn id(number: u64) -> ThreadId {
    ThreadId::global(kip().thread_info().user_base + 8 + number as u32, 1).expect("a global id")
}

/// How many thread numbers there are from the first one that is free at boot.
pub(crate) fn numbers() -> u64 {
    let info = kip().thread_info();
    (1 << info.number_bits) - u64::from(info.user_base) - 8
}

/// Makes a space with room for the UTCBs of many threads. `id` names its first, inactive thread.
pub(crate) fn make_space(id: ThreadId, utcb_area_log2: u32) {
    thread::control(id, arguments(id, None)).expect("a new space");
    let areas = [Fpage::memory(kip().base(), 12), Fpage::memory(UTCB_AREA, utcb_area_log2)];
    space::control(id, 0, areas[0], areas[1], ThreadId::ANY).expect("the areas are valid");
}

/// The size of [`make_space`]'s area for all threads of a measurement.
pub(crate) fn make_wide_space(id: ThreadId) {
    make_space(id, MANY_UTCBS);
}

/// An active thread in the space of `space`, with the UTCB of that index. It waits for its start
/// for ever.
pub(crate) fn make_thread(id: ThreadId, space: ThreadId, index: u64) {
    thread::control(id, arguments(space, Some(UTCB_AREA + index * x2::utcb::SIZE))).expect("a new thread");
}

/// Makes a wide space that has this program's memory.
pub(crate) fn make_program_space(id: ThreadId) {
    make_wide_space(id);
    extension::set_owner(id, utcb::my_global_id()).expect("the root task is privileged");
    let image = image();
    let target = Fpage::memory(image.start, 12).with_rights(Rights::ALL);
    let pages = (image.end - image.start).div_ceil(4096) as u32;
    let mut items = [MapItem::new(MapOperation::Map, target, pages, image.start)];
    extension::map_control(id, &mut items).expect("the program's memory");
}

/// The `index`-th thread in a space of [`make_program_space`], running `body`.
pub(crate) fn start(id: ThreadId, space: ThreadId, index: u64, body: extern "C" fn() -> !) {
    make_thread(id, space, index);
    extension::set_handlers(id, Some(utcb::my_global_id()), None).expect("the thread is owned");
    let sp = addr_of!(STACKS) as u64 + (index + 1) * STACK as u64 - 8;
    ipc::send(id, Message::with_words(0, &[body as usize as u64, sp])).expect("it waits for its start");
}

fn arguments(space: ThreadId, utcb: Option<u64>) -> ThreadControl {
    let me = utcb::my_global_id();
    let pager = if utcb.is_some() { me } else { ThreadId::NIL };
    ThreadControl { space, scheduler: me, pager, utcb }
}

pub(crate) fn delete(id: ThreadId) {
    thread::delete(id).expect("deletion never fails");
}
