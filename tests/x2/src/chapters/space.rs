//! Tests of spaces: SpaceControl, its areas and errors (ABI 12.3; X.2 rules 6.1-6.6).

use crate::framework::fixture::{Space, activate, kip_area, new_id, root_utcb_area, state_of};
use crate::framework::{arena, tests};
use l4::ipc::{self, Message};
use l4::kernel_interface::kernel_interface;
use l4::thread::{self, ThreadControl};
use l4::{kip, space, utcb};
use x2::control::ThreadState;
use x2::{ErrorCode, Fpage, MapItem, Rights, ThreadId};

tests! {
    SPC0001 [6.1b] "a space id that is none is error 3" invalid_spaces;
    SPC0002 [6.1c, 6.3] "a UTCB area too small or outside the user area is error 6" invalid_utcb_areas;
    SPC0003 [6.1c, 6.3] "a KIP area too small, outside the user area or over the UTCB area is error 7" invalid_kip_areas;
    SPC0004 [6.2a] "the areas of a space with an active thread stay" areas_of_active_space;
    SPC0005 [6.4] "the areas of an idle space can be moved" areas_of_idle_space;
    SPC0006 [5.11] "a space must be configured before a thread of it is activated" unconfigured;
    SPC0007 [5.23b, ABI 4] "KernelInterface finds the page where the space has it" page_elsewhere;
    SPC0008 [8.1] "spaces do not see each other's memory" separate_memory;
    SPC0009 [6.3] "UTCB areas of many sizes, anywhere in the user area" areas_anywhere;
    SPC0010 [5.16] "many spaces come and go" many_spaces;
    SPC0011 [6.5] "the control word is ignored, and comes back as 0" control_word;
    SPC0012 [5.11] "a UTCB location given before the space is configured is kept until activation, and checked there" kept_location;
}

fn new_space() -> ThreadId {
    let id = new_id();
    let control = ThreadControl { space: id, scheduler: kip().root(), pager: ThreadId::NIL, utcb: None };
    thread::control(id, control).expect("a new space");
    id
}

fn configure(id: ThreadId, kip_area: Fpage, utcb_area: Fpage) -> Result<u64, Option<ErrorCode>> {
    space::control(id, 0, kip_area, utcb_area, ThreadId::ANY)
}

const UTCB_BASE: u64 = 0x2000_0000;
const UTCBS: Fpage = Fpage::memory(UTCB_BASE, 12);

fn invalid_spaces() {
    for id in [ThreadId::NIL, ThreadId::ANY, new_id(), utcb::my_local_id(), ThreadId::interrupt(1)] {
        assert_eq!(configure(id, kip_area(), UTCBS), Err(Some(ErrorCode::InvalidSpace)), "{id:?}");
    }
}

fn invalid_utcb_areas() {
    let id = new_space();
    for area in [
        Fpage::from_raw(0x2000_0000 | 10 << 4),
        Fpage::io(0, 16),
        Fpage::COMPLETE,
        Fpage::memory(0xffff_8000_0000_0000, 12),
        Fpage::memory((1 << 47) - 4096, 12),
        Fpage::memory(0, 47),
    ] {
        assert_eq!(configure(id, kip_area(), area), Err(Some(ErrorCode::InvalidUtcbArea)), "{area:?}");
    }
    assert!(configure(id, kip_area(), UTCBS).is_ok());
}

fn invalid_kip_areas() {
    let id = new_space();
    for area in [
        Fpage::from_raw(0x3000_0000 | 10 << 4),
        Fpage::COMPLETE,
        Fpage::memory(0xffff_8000_0000_0000, 12),
        UTCBS,
    ] {
        assert_eq!(configure(id, area, UTCBS), Err(Some(ErrorCode::InvalidKipArea)), "{area:?}");
    }
    assert!(configure(id, kip_area(), UTCBS).is_ok());
}

fn areas_of_active_space() {
    let me = utcb::my_global_id();
    let space = Space::new();
    let thread = space.spawn(move || {
        loop {
            let base = kernel_interface().base;
            ipc::call(me, Message::with_words(1, &[base])).unwrap();
        }
    });
    assert_eq!(ipc::receive(thread).unwrap().word(0), kip().base());
    configure(thread, Fpage::memory(0x3000_0000, 12), UTCBS).expect("ignored, not refused");
    assert_eq!(ipc::call(thread, Message::new(0)).unwrap().word(0), kip().base());
}

fn areas_of_idle_space() {
    let id = new_space();
    configure(id, Fpage::memory(0x3000_0000, 12), UTCBS).unwrap();
    let area = Fpage::memory(root_utcb_area(), 16);
    configure(id, kip_area(), area).expect("no thread is active");
    assert_eq!(activate(id, id, 0x2000_0000), Err(Some(ErrorCode::InvalidUtcbArea)));
    activate(id, id, root_utcb_area()).expect("the area is there now");
}

fn unconfigured() {
    let id = new_space();
    let result = activate(id, id, 0x2000_0000);
    assert!(matches!(result, Err(Some(ErrorCode::InvalidSpace | ErrorCode::InvalidUtcbArea))), "{result:?}");
}

/// The code of a thread in a space whose areas are elsewhere: it sends the value that
/// KernelInterface returns in RAX.
#[unsafe(naked)]
extern "C" fn send_page_address() -> ! {
    core::arch::naked_asm!(
        ".byte 0xf0, 0x90",
        "mov r11, [rax + {ipc}]",
        "mov rdi, gs:[0]",
        "mov rsi, [rdi + {handle}]",
        "mov r9d, 1",
        "xor edx, edx",
        "xor r8d, r8d",
        "call r11",
        "2: pause",
        "jmp 2b",
        ipc = const x2::kip::IPC,
        handle = const x2::utcb::USER_DEFINED_HANDLE * 8,
    )
}

fn page_elsewhere() {
    let me = utcb::my_global_id();
    let id = new_space();
    let base = 0x7000_1234_5000;
    configure(id, Fpage::memory(base, 12), UTCBS).unwrap();
    let control = ThreadControl { space: id, scheduler: kip().root(), pager: me, utcb: Some(0x2000_0c00) };
    thread::control(id, control).unwrap();
    // A pager may read and write its clients' registers. The handle tells the code to which thread
    // it must send.
    let values = l4::syscall::ExchangedRegisters { handle: me.raw(), ..Default::default() };
    // SAFETY: the thread has not started.
    unsafe { thread::exchange_registers(id, x2::control::ExchangeControl::HANDLE, values) }.unwrap();
    let sp = arena::stack(12) + 4096;
    ipc::send(id, Message::with_words(0, &[send_page_address as *const () as u64, sp])).unwrap();
    let told = crate::framework::fixture::receive_as_pager(id).unwrap();
    assert_eq!((told.tag.untyped(), told.word(0)), (1, base));
}

fn separate_memory() {
    let me = utcb::my_global_id();
    const PLACE: u64 = 0x4000_0000_0000;
    for value in [1, 2] {
        let page = arena::page();
        let thread = Space::new().spawn_paged_by(me, move || {
            arena::write_at(PLACE, value);
            ipc::call(me, Message::with_words(1, &[arena::read_at(PLACE)])).unwrap();
        });
        let fault = crate::framework::fixture::receive_as_pager(thread).unwrap();
        assert_eq!(fault.word(0), PLACE, "what another space has mapped there is not here");
        let item = MapItem::map(page.fpage(Rights::READ_WRITE), PLACE);
        let told = crate::framework::fixture::call_as_pager(thread, Message::new(0).map_item(item));
        assert_eq!((told.word(0), page.read(0)), (value, value));
    }
}

fn areas_anywhere() {
    let root = kip().root();
    for (base, size_log2) in
        [(0, 12), (0x1000, 12), (0x7fff_0000_0000, 16), (0x4000_0000_0000, 40), ((1 << 47) - 0x2000, 12)]
    {
        let id = new_space();
        configure(id, kip_area(), Fpage::memory(base, size_log2))
            .unwrap_or_else(|error| panic!("{base:#x}: {error:?}"));
        let last = base + (1 << size_log2) - 1024;
        for location in [base, last] {
            let thread = if location == base { id } else { new_id() };
            let control = ThreadControl { space: id, scheduler: root, pager: root, utcb: Some(location) };
            thread::control(thread, control).unwrap_or_else(|error| panic!("{location:#x}: {error:?}"));
        }
    }
}

fn many_spaces() {
    for _ in 0..50 {
        let id = new_space();
        configure(id, kip_area(), UTCBS).unwrap();
        activate(id, id, 0x2000_0000).unwrap();
        thread::delete(id).unwrap();
    }
}

fn control_word() {
    let id = new_space();
    for control in [0, 1, 1 << 31, 1 << 63, u64::MAX] {
        assert_eq!(space::control(id, control, kip_area(), UTCBS, ThreadId::NIL), Ok(0));
    }
}

/// The second step in which old programs start a space: they do not pass a UTCB location any more.
fn activate_where_kept(id: ThreadId, space: ThreadId) -> Result<(), Option<ErrorCode>> {
    let root = kip().root();
    thread::control(id, ThreadControl { space, scheduler: root, pager: root, utcb: None })
}

fn kept_location() {
    let area = UTCB_BASE;
    let create = |id: ThreadId, space: ThreadId, location: u64| {
        let control =
            ThreadControl { space, scheduler: kip().root(), pager: ThreadId::NIL, utcb: Some(location) };
        thread::control(id, control).expect("nothing can be said of the location yet");
    };
    let ids: [ThreadId; 4] = core::array::from_fn(|_| new_id());
    let [first, second, third, fourth] = ids;
    create(first, first, area);
    // An inactive thread gets another UTCB location, and there are more threads.
    create(second, first, 7);
    create(second, first, area + 1024);
    create(third, first, area + 4096);
    create(fourth, first, area);
    assert_eq!(activate_where_kept(first, first), Err(Some(ErrorCode::InvalidSpace)));
    configure(first, kip_area(), UTCBS).unwrap();
    for id in [first, second] {
        activate_where_kept(id, first).expect("the place that was kept is free");
        assert_eq!(state_of(id), ThreadState::Waiting);
    }
    for outside_or_used in [third, fourth] {
        assert_eq!(activate_where_kept(outside_or_used, first), Err(Some(ErrorCode::InvalidUtcbArea)));
    }
    activate(third, first, area + 2048).expect("the place given last counts");
    activate(fourth, first, area).expect_err("it is the first thread's");
    // The location is given at creation and again at activation, to the first thread of another
    // space.
    let again = new_id();
    create(again, again, area);
    configure(again, kip_area(), UTCBS).unwrap();
    activate(again, again, area).unwrap();
    assert_eq!(state_of(again), ThreadState::Waiting);
    // The state of an earlier thread in this memory must not be visible.
    thread::delete(again).unwrap();
    let without = new_space();
    configure(without, kip_area(), UTCBS).unwrap();
    assert_eq!(activate_where_kept(without, without), Err(Some(ErrorCode::InvalidUtcbArea)));
}
