//! Tests of large memory, boot modules, a heap that grows, and the names of servers.

use crate::names;
use crate::raw;
use crate::report::Report;
use alloc::vec::Vec;
use interfaces::root::id as request;
use l4::utcb;
use rt::root::Status;
use rt::root::memory::{self, LARGE_PAGE};

/// The address at which the pool is mapped.
const POOL: u64 = 0x1_0000_0000;
/// An address where modules can be mapped.
const ROOM: u64 = 0x2000_0000_0000;

pub(crate) fn test() -> ! {
    let mut report = Report::plan(16);
    heap(&mut report);
    pool(&mut report);
    modules(&mut report);
    names::test(&mut report);
    l4::start::halt()
}

fn heap(report: &mut Report) {
    let before = memory::available().unwrap_or(0);
    let large = alloc::vec![7u8; 5 << 20];
    let after = memory::available().unwrap_or(0);
    let intact = large.iter().all(|&byte| byte == 7) && before - after >= large.len() as u64;
    report.test(intact, "ROOT0300", "a heap grows by memory from root");
    utcb::set_message_register(5, 0x1234);
    let more = alloc::vec![8u8; 9 << 20];
    let kept = utcb::message_register(5) == 0x1234 && more.iter().all(|&byte| byte == 8);
    report.test(kept && large[0] == 7, "ROOT0301", "it does so while a message is being written");
    drop((large, more));
    let refused = Vec::<u8>::new().try_reserve_exact(1 << 40).is_err();
    let goes_on = Vec::<u8>::new().try_reserve_exact(5 << 20).is_ok();
    report.test(refused && goes_on, "ROOT0302", "what root does not give is an error, not the end");
}

fn word(address: u64) -> *mut u64 {
    address as *mut u64
}

fn pool(report: &mut Report) {
    let size = memory::available().unwrap_or(0) & !(LARGE_PAGE - 1);
    report.test(
        size >= 64 << 20,
        "ROOT0310",
        "a server with `memory rest` can have what the machine has left",
    );
    // The quota of kernel memory suffices for page tables of large pages only.
    let given = memory::allocate_pool(POOL, size) == Ok(());
    let mut good = given;
    let ends = || (POOL..POOL + size).step_by(LARGE_PAGE as usize).flat_map(|at| [at, at + LARGE_PAGE - 8]);
    for at in ends().filter(|_| given) {
        // SAFETY: root has mapped the memory for this program alone, and there are no references to
        // it.
        unsafe { word(at).write_volatile(at) };
    }
    for at in ends().filter(|_| given) {
        // SAFETY: root has mapped the memory for this program alone, and there are no references to
        // it.
        good &= unsafe { word(at).read_volatile() } == at;
    }
    report.test(good, "ROOT0311", "all of it at once, mapped by large pages");
    let left = memory::available();
    let beyond = memory::allocate_pool(POOL + size, LARGE_PAGE) == Err(Status::QuotaExceeded);
    report.test(left.is_ok_and(|left| left < LARGE_PAGE) && beyond, "ROOT0312", "and no more than that");
    // SAFETY: there are no references to the memory.
    let freed = unsafe { memory::free(POOL, size) };
    let back = memory::available().is_ok_and(|back| back >= size);
    report.test(freed == Ok(()) && back, "ROOT0313", "it is given back");
    let given = memory::allocate_pool(POOL, size) == Ok(());
    let mut clean = given;
    for at in ends().filter(|_| given) {
        // SAFETY: root has mapped the memory for this program alone, and there are no references to
        // it.
        clean &= unsafe { word(at).read_volatile() } == 0;
    }
    report.test(clean, "ROOT0314", "what a server had in its memory is not there for the next one");
    // SAFETY: there are no references to the memory.
    let _ = unsafe { memory::free(POOL, size) };
}

fn modules(report: &mut Report) {
    let module = memory::module("x2-tests", ROOM).unwrap_or_default();
    let (address, size) = (module.as_ptr() as u64, module.len() as u64);
    let there = module.starts_with(b"\x7fELF") && (ROOM..ROOM + LARGE_PAGE).contains(&address);
    // The section headers are the last part of the file.
    let headers =
        module.get(40..48).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8])));
    let complete =
        headers > size / 2 && headers < size && module.iter().rev().take(4096).any(|&byte| byte != 0);
    report.test(there && complete, "ROOT0320", "a boot module of the server's is mapped, from end to end");
    let again = memory::module("x2-tests", ROOM + (1 << 30)).map(|again| again.as_ptr());
    report.test(again == Ok(module.as_ptr()), "ROOT0321", "asked for again, it is where it was");
    let others = ["root", "", "x2", "x2-tests "].map(|name| memory::module(name, ROOM + (1 << 30)).map(drop));
    let taken = memory::allocate(address & !4095, 4096) == Err(Status::InvalidArgument);
    let long = raw::call(request::ROOT_MODULE_MAP, &[ROOM, 9, 0]) == Err(direct::Status::BAD_ARGUMENTS);
    report.test(
        others == [Err(Status::NotFound); 4] && taken && long,
        "ROOT0322",
        "other modules are not the server's, and nothing else lies where one is",
    );
}
