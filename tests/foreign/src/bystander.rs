//! A thread of another space that waits for a message of this server, while hostile programs try to
//! send it messages.

use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, space, start, utcb};
use x2::extension::{MapItem, MapOperation};
use x2::{Fpage, Rights, ThreadId};

static STACK: start::Stack = start::Stack::new();
/// How many messages the bystander has received.
static RECEIVED: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Bystander(ThreadId);

unsafe extern "C" {
    /// The linker script defines the two symbols; only their addresses have a meaning.
    static __program_start: u8;
    static __program_end: u8;
}

/// The address of the bystander's UTCB area, outside the program.
const UTCB_AREA: u64 = 0x7fff_8001_0000;

/// Starts the bystander in another space that this server owns and that has this program's memory.
pub(crate) fn start() -> Bystander {
    let number = kip().thread_info().user_base + 8;
    let id = ThreadId::global(number, 1).expect("the version makes a global id");
    let me = utcb::my_global_id();
    let create = ThreadControl { space: id, scheduler: me, pager: ThreadId::NIL, utcb: None };
    thread::control(id, create).expect("a new space");
    let areas = [Fpage::memory(kip().base(), 12), Fpage::memory(UTCB_AREA, 12)];
    space::control(id, 0, areas[0], areas[1], ThreadId::ANY).expect("the areas are valid");
    extension::set_owner(id, me).expect("the root task is privileged");
    let (first, end) = (&raw const __program_start as u64 & !0xfff, &raw const __program_end as u64);
    for page in (first..end).step_by(4096) {
        // The page is read once, so that this server gets it from sigma0 and can map it. SAFETY:
        // the page lies within this program, whose bytes can all be read; the value is not used.
        unsafe { (page as *const u8).read_volatile() };
    }
    let target = Fpage::memory(first, 12).with_rights(Rights::ALL);
    let pages = (end - first).div_ceil(4096) as u32;
    let mut items = [MapItem::new(MapOperation::Map, target, pages, first)];
    extension::map_control(id, &mut items).expect("the program's memory");
    thread::control(id, ThreadControl { pager: me, utcb: Some(UTCB_AREA), ..create }).expect("the bystander");
    let sp = &raw const STACK as u64 + start::STACK_SIZE as u64 - 8;
    let ip = wait_for_ever as extern "C" fn() -> ! as usize as u64;
    ipc::send(id, Message::with_words(0, &[ip, sp])).expect("it waits for its start");
    Bystander(id)
}

extern "C" fn wait_for_ever() -> ! {
    loop {
        if let Ok(received) = ipc::receive(ThreadId::ANY) {
            RECEIVED.fetch_add(1, Ordering::Relaxed);
            let _ = ipc::reply(received.from, Message::new(0));
        }
    }
}

impl Bystander {
    /// Whether the bystander answers a message of this server, and has received no other.
    pub(crate) fn is_undisturbed(&self) -> bool {
        let answered = ipc::call(self.0, Message::new(0)).is_ok();
        answered && RECEIVED.load(Ordering::Relaxed) == 1
    }
}
