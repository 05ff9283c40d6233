//! Tests of spaces that a server owns.

use crate::raw::{self, is_refused};
use crate::report::Report;
use alloc::vec::Vec;
use interfaces::root::id as request;
use l4::ipc::{self, Message, Received};
use l4::x2::extension::{MapItem, MapOperation, SYSTEM_CALL_LABEL, SystemCallMode};
use l4::x2::{ErrorCode, Fpage, Rights, ThreadId};
use l4::{extension, utcb};
use rt::root::Status;
use rt::root::space::{self, Description, Space};

const DESCRIPTION: Description = Description {
    kernel_interface: 0x7fff_8000_0000,
    utcb_area: 0x7fff_8001_0000,
    utcb_area_log2: 14,
    system_calls: SystemCallMode::Exception,
    emulation_entry: 0,
    kernel_memory: 128 << 10,
};
/// The address of the code in the spaces.
const CODE: u64 = 0x40_0000;

/// `mov eax, 42; syscall; jmp` back to the `syscall`.
const FOREIGN: [u8; 9] = [0xb8, 42, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xfc];
/// The address at which the server has the page with that code, for all spaces.
const POOL: u64 = 0x4000_0000;

fn me() -> ThreadId {
    utcb::my_global_id()
}

fn write_code() {
    rt::root::memory::allocate_pool(POOL, 4096).expect("the quota allows it");
    for (index, &byte) in FOREIGN.iter().enumerate() {
        // SAFETY: root has just mapped the page for this program alone.
        unsafe { (POOL as *mut u8).add(index).write_volatile(byte) };
    }
}

fn map_code(thread: ThreadId) -> bool {
    let target = Fpage::memory(CODE, 12).with_rights(Rights::READ_EXECUTE);
    extension::map_control(thread, &mut [MapItem::new(MapOperation::Map, target, 1, POOL)]).is_ok()
}

/// Starts a thread of an owned space. Returns whether its system call arrives here.
fn runs(thread: ThreadId) -> bool {
    let is_call = |message: Received| {
        message.from == thread && message.tag.label() == SYSTEM_CALL_LABEL && message.word(0) == 42
    };
    ipc::send(thread, Message::with_words(0, &[CODE, 0])).is_ok() && ipc::receive(thread).is_ok_and(is_call)
}

pub(crate) fn test() -> ! {
    let mut report = Report::plan(12);
    write_code();
    let (made, first) = space::create(&DESCRIPTION, me()).expect("the quotas allow it");
    report.test(
        map_code(first) && runs(first),
        "ROOT0200",
        "a space is the server's to fill, and its first thread runs when the server starts it",
    );
    threads(&mut report, made, first);
    wrong(&mut report);
    quotas(&mut report, made);
    report.test(
        space::delete(made) == Ok(())
            && space::delete(made) == Err(Status::InvalidArgument)
            && space::create_thread(made, 1, me()) == Err(Status::InvalidArgument),
        "ROOT0209",
        "a space is deleted once, and its name means nothing afterwards",
    );
    let gone = extension::state(first).map(drop) == Err(Some(ErrorCode::InvalidThread))
        && ipc::send(first, Message::new(0)).is_err();
    report.test(gone, "ROOT0210", "its threads are gone");
    let often = (0..200).all(|_| {
        let Ok((space, first)) = space::create(&DESCRIPTION, me()) else { return false };
        let second = space::create_thread(space, 3, me());
        map_code(first) && second.is_ok_and(runs) && space::delete(space) == Ok(())
    });
    report.test(often, "ROOT0211", "spaces come and go without an end, with what they contain");
    l4::start::halt()
}

fn threads(report: &mut Report, made: Space, first: ThreadId) {
    let second = space::create_thread(made, 15, me());
    report.test(
        second.is_ok_and(runs),
        "ROOT0201",
        "another thread runs in the same space, at the last place of the UTCB area",
    );
    let places = [15, 0, 16, u32::MAX].map(|place| space::create_thread(made, place, me()));
    let refused = places.iter().all(|&result| result == Err(Status::InvalidArgument));
    report.test(refused, "ROOT0202", "a place that is taken or outside is refused");
    let second = second.unwrap_or(ThreadId::NIL);
    report.test(
        space::create_thread(made, 1, second) == Err(Status::InvalidArgument),
        "ROOT0203",
        "only a thread of the server's own space can be the handler",
    );
    let not_theirs = [ThreadId::NIL, me(), utcb::pager(), ThreadId::from_raw(u64::MAX)];
    let refused =
        not_theirs.iter().all(|&thread| space::delete_thread(thread) == Err(Status::InvalidArgument));
    let own = rt::root::delete_thread(second) == Err(Status::InvalidArgument);
    report.test(refused && own, "ROOT0204", "only threads of owned spaces are deleted as such");
    let deleted = space::delete_thread(second) == Ok(())
        && space::delete_thread(second) == Err(Status::InvalidArgument)
        && space::delete_thread(first) == Err(Status::InvalidArgument)
        && extension::state(first).is_ok()
        && extension::state(second).is_err();
    report.test(deleted, "ROOT0205", "a thread is deleted once, but not the last one of a space");
}

fn wrong(report: &mut Report) {
    let Description { kernel_interface: kip, utcb_area: area, .. } = DESCRIPTION;
    let create = |words: [u64; 6], handler: ThreadId| {
        let [kip, area, log2, mode, entry, memory] = words;
        raw::call(request::ROOT_SPACE_CREATE, &[kip, area, log2, mode, entry, memory, handler.raw()])
    };
    let most = DESCRIPTION.kernel_memory;
    let areas = [
        [kip + 1, area, 14, 1, 0, most],
        [kip, area + 0x1000, 14, 1, 0, most],
        [kip, area, 11, 1, 0, most],
        [kip, area, 64, 1, 0, most],
        [kip, area, u64::MAX, 1, 0, most],
        [kip, kip, 14, 1, 0, most],
        [1 << 47, area, 14, 1, 0, most],
        [kip, area, 14, 3, 0, most],
        [kip, area, 14, 2, 1 << 47, most],
        [kip, area, 14, 1, 0, 1 << 47],
        [kip, area, 14, 1, 0, 1 << 48],
        [kip, area, 14, 1, 0, (1 << 48) + most],
        [kip, area, 14, 1, 0, (1 << 52) - 4096],
        [kip, area, 14, 1, 0, u64::MAX - 1],
    ];
    let refused = areas.into_iter().all(|words| is_refused(create(words, me()), Status::InvalidArgument));
    report.test(
        refused,
        "ROOT0206",
        "a space whose areas, mode, entry or kernel memory are wrong is refused",
    );
    let good = [kip, area, 14, 1, 0, most];
    let handlers = [ThreadId::NIL, ThreadId::ANY, utcb::pager(), ThreadId::from_raw(me().raw() + 1)];
    let refused =
        handlers.into_iter().all(|handler| is_refused(create(good, handler), Status::InvalidArgument));
    report.test(refused, "ROOT0207", "a handler that is not the server's is refused");
}

fn quotas(report: &mut Report, made: Space) {
    // Two of the four spaces are in use, the server's own included, and two of eight threads.
    let more: Vec<_> = (0..3).map(|_| space::create(&DESCRIPTION, me())).collect();
    let spaces = more[0].is_ok() && more[1].is_ok() && more[2] == Err(Status::QuotaExceeded);
    let threads: Vec<_> = (1..6).map(|place| space::create_thread(made, place, me())).collect();
    let threads = threads[..4].iter().all(Result::is_ok) && threads[4] == Err(Status::QuotaExceeded);
    let deleted = more.into_iter().flatten().all(|(space, _)| space::delete(space) == Ok(()));
    let much = Description { kernel_memory: 2 << 20, ..DESCRIPTION };
    let unlimited = Description { kernel_memory: u64::MAX, ..DESCRIPTION };
    let memory = [much, unlimited].map(|wanted| space::create(&wanted, me()).map(drop));
    let memory = memory == [Err(Status::QuotaExceeded); 2];
    report.test(
        spaces && threads && memory && deleted,
        "ROOT0208",
        "the quotas of spaces, threads and kernel memory hold",
    );
}

/// Ends this server while it owns a space whose thread runs.
pub(crate) fn end_with_space() -> ! {
    write_code();
    let (_, first) = space::create(&DESCRIPTION, me()).expect("what it had before was taken back");
    assert!(map_code(first) && runs(first), "its thread runs");
    let _ = ipc::send(first, Message::with_words(1, &[]));
    rt::root::exit(9)
}
