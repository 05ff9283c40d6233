//! A server that root starts from a boot configuration. Its argument says what it does: run tests
//! that report in TAP, or end in one of the ways in which a server can end.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod console;
mod driver;
mod entropy;
mod iommu;
mod keys;
mod memory;
mod messages;
mod names;
mod net;
mod parallel;
mod random;
mod raw;
mod report;
mod screen;
mod spaces;
mod threads;

use direct::Status as Refusal;
use interfaces::root::id as request;
use raw::is_refused;
use report::Report;
use rt::root::{self, Status};
use rt::start_page;

l4::program!(run, kip = start_page::KIP);

rt::growing_heap!(64 << 10);

fn run() -> ! {
    root::report_panics();
    let (_, arguments) = start_page::read().expect("root writes the start page");
    match arguments {
        "test one  two" => test(),
        "spaces" => spaces::test(),
        "memory" => memory::test(),
        "threads" => threads::test(),
        "parallel" => parallel::test(),
        "victim" => parallel::end_while_served(),
        "late" => parallel::register_late(),
        "attack" => random::attack(),
        "watch" => random::watch(),
        "deep" => threads::run_over(),
        "echo" => names::echo(),
        "silent" => names::silent(),
        "console" => console::test(),
        "entropy" => entropy::test(),
        "entropy-ends" => entropy::test_ends(),
        "no-entropy" => entropy::test_without(),
        "net" => net::test(),
        "net-ends" => net::test_ends(),
        "net-link" => net::test_link(),
        "no-net" => net::test_without(),
        "screen" => screen::test(),
        "screen-ends" => screen::test_ends(),
        "keys" => keys::test(),
        "no-keys" => keys::test_without(),
        "driver" => driver::drive(),
        "client" => driver::test(),
        "message-driver" => messages::drive(),
        "message-client" => messages::test(),
        "iommu-driver" => iommu::drive(),
        "iommu-teller" => iommu::tell(),
        "iommu-client" => iommu::test(),
        "no-iommu-client" => iommu::test_without(),
        "power" => power(),
        "port" => {
            // SAFETY: this server does not have the port, so nothing is read.
            unsafe { l4::port::read8(0x80) };
            root::exit(1)
        }
        "space" => spaces::end_with_space(),
        "fault" => fault(),
        "panic" => panic!("as asked for"),
        "instruction" => {
            print_through_the_kernel();
            root::exit(1)
        }
        "exit" => root::exit(7),
        other => panic!("unknown argument {other}"),
    }
}

fn test() -> ! {
    let mut plan = Report::plan(16);
    let mut report = |good: bool, id: &str, sentence: &str| plan.test(good, id, sentence);
    let name = start_page::read().map(|(name, _)| name);
    report(
        name == Some("tests"),
        "ROOT0001",
        "a server is told its name and its arguments as they stand in the file",
    );
    report(raw::call(4999, &[]) == Err(Refusal::BAD_ID), "ROOT0002", "an unknown request is refused");
    let too_long = raw::call(request::ROOT_PRINT, &[9, 0]);
    report(too_long == Err(Refusal::BAD_ARGUMENTS), "ROOT0003", "text longer than the message is refused");
    let huge = raw::call(request::ROOT_PRINT, &[u64::MAX]);
    report(huge == Err(Refusal::BAD_ARGUMENTS), "ROOT0004", "a length that overflows is refused");
    report(
        raw::call(request::ROOT_PRINT, &[]) == Err(Refusal::BAD_ARGUMENTS),
        "ROOT0005",
        "a text without length is refused",
    );
    let privileged = l4::thread::delete(l4::utcb::my_global_id());
    report(privileged == Err(Some(l4::x2::ErrorCode::NoPrivilege)), "ROOT0006", "a server is not privileged");
    let device = root::device::attach_interrupt(4, l4::utcb::my_global_id()) == Err(Status::NotFound)
        && root::device::detach_interrupt(4) == Err(Status::InvalidArgument)
        && root::device::map_device(0xfed0_0000, 4096, 0x7000_0000) == Err(Status::NotFound)
        && root::device::ports(0).is_none();
    report(device, "ROOT0007", "a server without devices gets no interrupt and no device memory");
    let end = root::end_system(root::End::PowerOff(0)) == Status::NotFound;
    report(end, "ROOT0008", "only a server whose configuration says so ends the system");
    small_memory(&mut report);
    threads(&mut report);
    l4::start::halt()
}

fn small_memory(report: &mut impl FnMut(bool, &str, &str)) {
    const HERE: u64 = 0x4000_0000;
    let allocate = |address, size| raw::call(request::ROOT_MEMORY_ALLOCATE, &[address, size]);
    let free = |address, size| raw::call(request::ROOT_MEMORY_FREE, &[address, size]);
    let mut good = allocate(HERE, 0x5000).is_ok();
    for page in 0..5 {
        let word = (HERE + page * 4096) as *mut u64;
        // SAFETY: root has just mapped the page for this program alone.
        unsafe {
            good &= word.read_volatile() == 0;
            word.write_volatile(page);
        }
    }
    report(good, "ROOT0010", "memory comes zeroed, where it was asked for");
    let wrong = [
        (HERE + 0x4000, 0x1000),
        (HERE - 0x1000, 0x2000),
        (HERE + 0x9001, 0x1000),
        (HERE + 0x9000, 7),
        (HERE, 0),
        (0, 0x1000),
        (u64::MAX - 0xfff, 0x1000),
        (start_page::ADDRESS, 0x1000),
        (0x100_0000, 0x1000),
    ];
    let refused =
        wrong.iter().all(|&(address, size)| is_refused(allocate(address, size), Status::InvalidArgument));
    report(refused, "ROOT0011", "memory where some is, unaligned, empty or outside is refused");
    report(
        is_refused(allocate(0x5000_0000, 1 << 20), Status::QuotaExceeded),
        "ROOT0012",
        "the quota of memory holds",
    );
    let is_wrong = |address, size| is_refused(free(address, size), Status::InvalidArgument);
    let wrong_free = is_wrong(HERE, 0x1000) && is_wrong(0, 0);
    let freed = free(HERE, 0x5000).is_ok() && is_wrong(HERE, 0x5000);
    report(wrong_free && freed, "ROOT0013", "memory is given back once, as it was allocated");
    let again = (0..300).all(|_| allocate(HERE, 0x40000).is_ok() && free(HERE, 0x40000).is_ok());
    report(again, "ROOT0014", "what is given back counts against the quota no more");
}

static STACKS: [l4::start::Stack; 3] = [const { l4::start::Stack::new() }; 3];

extern "C" fn answer_once() -> ! {
    if let Ok(message) = l4::ipc::wait() {
        let _ = l4::ipc::reply(message.from, l4::ipc::Message::with_words(0, &[42]));
    }
    l4::start::halt()
}

fn threads(report: &mut impl FnMut(bool, &str, &str)) {
    let create = |which: usize| {
        let sp = &raw const STACKS[which] as u64 + l4::start::STACK_SIZE as u64 - 8;
        // SAFETY: the function needs only a stack, and no running thread uses this one.
        unsafe { root::create_thread(answer_once as extern "C" fn() -> ! as usize as u64, sp) }
    };
    let made = [create(0), create(1), create(2)];
    let answers = made.iter().flatten().filter(|&&thread| {
        l4::ipc::call(thread, l4::ipc::Message::new(0)).is_ok_and(|answer| answer.word(0) == 42)
    });
    report(answers.count() == 3, "ROOT0020", "threads of the server run and answer");
    report(create(0) == Err(Status::QuotaExceeded), "ROOT0021", "the quota of threads holds");
    let delete = |id: u64| raw::call(request::ROOT_THREAD_DELETE, &[id]);
    let me = l4::utcb::my_global_id().raw();
    let refused = [0, u64::MAX, me, l4::utcb::pager().raw(), me + 1].map(delete);
    let deleted = made.iter().flatten().all(|thread| delete(thread.raw()).is_ok());
    let only_own = refused.iter().all(|&result| is_refused(result, Status::InvalidArgument));
    report(
        only_own && deleted && create(0).is_ok(),
        "ROOT0022",
        "a server deletes its own threads only, and can make others",
    );
}

/// Ends the system. If the program goes on, that is reported as an additional result.
fn power() -> ! {
    let mut report = Report::plan(1);
    let end = |words: &[u64]| raw::call(request::ROOT_SYSTEM_END, words);
    let wrong = is_refused(end(&[2, 0]), Status::InvalidArgument)
        && is_refused(end(&[0, 128]), Status::InvalidArgument)
        && end(&[0]) == Err(Refusal::BAD_ARGUMENTS);
    report.test(wrong, "ROOT0400", "an end of the system that does not exist is refused");
    root::end_system(root::End::PowerOff(5));
    report.test(false, "ROOT0401", "the system ends");
    l4::start::halt()
}

/// Reads an address at which nothing is mapped.
fn fault() -> ! {
    // SAFETY: the load is assembler code at an address where there is no Rust object; it faults.
    unsafe {
        core::arch::asm!("mov rax, [rax]", inout("rax") 0x1234_5000u64 => _, options(nostack, readonly));
    }
    root::exit(1)
}

/// Executes an instruction that only a privileged program may use.
fn print_through_the_kernel() {
    l4::console::print_byte(b'!');
}
