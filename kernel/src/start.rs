//! The kernel's beginning, in order: what each step needs is there before it.
use x2::Rights;
use x2::kip::{MemoryDescriptor, MemoryKind as Kind};

use crate::arch::features::{self, Features};
use crate::arch::layout;
use crate::boot::{BootInformation, Protocol, kickstart, preparation, reserved};
use crate::memory::PhysRange;
use crate::syscall::Call;
use crate::thread::{initial, table};
use crate::{arch, config, interrupt, kdb, kip, log, mapping, memory, trace};

/// SystemBase is at least this: the interrupt lines of a PC's old controllers, whether or not there are so many.
const LEAST_LINES: u32 = 16;

/// Called by the boot code on the processor's own stack and the final page tables. Never returns.
pub fn start(boot: &'static mut BootInformation) -> ! {
    for range in boot.memory() {
        log::debug!("memory {:#014x}..{:#014x} {:?}", range.start, range.end, range.kind);
    }
    let image = arch::image_range();
    let kernel_memory = match boot.protocol {
        Protocol::Kickstart => {
            let is_memory = arch::is_direct_mapped;
            kickstart::kernel_memory(kip::servers(), kip::memory_descriptors(), image, is_memory)
                .unwrap_or_else(|missing| panic!("cannot start the system: {missing}"))
        }
        // SAFETY: nothing else runs yet.
        Protocol::Multiboot1 | Protocol::Multiboot2 => unsafe { preparation::prepare(boot, image) }
            .unwrap_or_else(|obstacle| panic!("cannot start the system: {obstacle}")),
    };
    // SAFETY: nothing else runs yet; the kernel's memory is direct-mapped, and `prepare` gave it to nobody else.
    unsafe {
        reserved::add(kernel_memory);
        memory::init(kernel_memory);
    }
    log::info!("kernel memory: {} KiB at {:#x}", kernel_memory.size() >> 10, kernel_memory.start);
    for (number, module) in boot.modules().iter().enumerate() {
        log::info!(
            "module {number}: {:#x}..{:#x} {}",
            module.start,
            module.end,
            boot.module_command_line(module)
        );
    }
    arch::boot::start_processors(boot);
    interrupt::init(arch::interrupt_lines().max(LEAST_LINES), arch::message_interrupts());
    complete_interface_page();
    announce_system_calls();
    let (sigma0, root) = kip::servers();
    log::info!("sigma0 at {:#x}, root task at {:#x}", sigma0.ip, root.ip);
    table::threads().init();
    arch::page_entry::configure(features::has(Features::GIANT_PAGES), features::has(Features::NO_EXECUTE));
    mapping::init(reserved::ranges());
    arch::entry::init();
    if initial::create().is_err() {
        panic!("cannot start the system: no memory for the initial servers");
    }
    if trace::select(config::get().trace).is_err() {
        log::warning!("no memory for the trace buffer");
    }
    kdb::init();
    arch::boot::processors::release();
    arch::entry::enter()
}

/// Tells user programs where the system-call stubs are (ABI 3).
fn announce_system_calls() {
    for (word, call) in [
        (x2::kip::IPC, Call::Ipc),
        (x2::kip::LIPC, Call::Ipc),
        (x2::kip::EXCHANGE_REGISTERS, Call::ExchangeRegisters),
        (x2::kip::THREAD_CONTROL, Call::ThreadControl),
        (x2::kip::SYSTEM_CLOCK, Call::SystemClock),
        (x2::kip::THREAD_SWITCH, Call::ThreadSwitch),
        (x2::kip::SCHEDULE, Call::Schedule),
        (x2::kip::UNMAP, Call::Unmap),
        (x2::kip::SPACE_CONTROL, Call::SpaceControl),
        (x2::kip::PROCESSOR_CONTROL, Call::ProcessorControl),
        (x2::kip::MEMORY_CONTROL, Call::MemoryControl),
        (x2::kip::SPACE_OPTIONS, Call::SpaceOptions),
        (x2::kip::MAP_CONTROL, Call::MapControl),
        (x2::kip::THREAD_STATE, Call::ThreadState),
        (x2::kip::NOTIFY, Call::Notify),
    ] {
        // SAFETY: nothing else runs yet.
        unsafe { kip::set_word(word, layout::STUB_PAGE + call.stub_offset()) }
    }
}

/// Fills in the rest of the kernel interface page. After this no boot memory may be taken: its unused rest is given to
/// sigma0.
fn complete_interface_page() {
    let image = PhysRange::new(arch::image_range().start, arch::boot::memory::used_end());
    let mut page_sizes = 1 << 12 | 1 << 21;
    if features::has(Features::GIANT_PAGES) {
        page_sizes |= 1 << 30;
    }
    let rights = if features::has(Features::NO_EXECUTE) { Rights::ALL } else { Rights::READ_WRITE };
    let processor = kip::Processor { external_khz: arch::bus_khz(), internal_khz: arch::time_stamp_khz() };
    let facts = kip::Facts {
        image,
        interrupts: interrupt::system_base(),
        messages: interrupt::messages(),
        rights,
        page_sizes,
        processors: &[processor; kip::MAX_PROCESSORS][..arch::cpu_count() as usize],
        isolates: features::has(Features::NO_MELTDOWN),
    };
    let user = MemoryDescriptor {
        kind: Kind::Conventional,
        subtype: 0,
        is_virtual: true,
        low: 0,
        last: layout::USER_END - 1,
    };
    // SAFETY: nothing else runs yet.
    let result = unsafe {
        reserved::add(image);
        let own = reserved::ranges().iter().map(|range| preparation::physical(Kind::Reserved, 0, *range));
        kip::complete(&facts, own.chain([user]))
    };
    if result.is_err() {
        panic!("cannot start the system: {}", preparation::Obstacle::Descriptors);
    }
}
