//! The start of the kernel, in an order in which each step finds what it needs.
use x2::Rights;
use x2::kip::{MemoryDescriptor, MemoryKind as Kind};

use crate::arch::features::{self, Features};
use crate::arch::layout;
use crate::boot::nodes::Nodes;
use crate::boot::{BootInformation, Protocol, kickstart, preparation, reserved};
use crate::memory::node::Layout;
use crate::memory::{PhysAddr, PhysRange};
use crate::syscall::Call;
use crate::thread::{initial, table};
use crate::{arch, boot_info, config, interrupt, kdb, kip, log, mapping, memory, trace};

/// SystemBase is at least this: the number of interrupt lines of a PC's old controllers, whether or
/// not the machine has them.
const LEAST_LINES: u32 = 16;

/// Called by the boot code on the processor's own stack and the final page tables. Never returns.
pub fn start(boot: &'static mut BootInformation) -> ! {
    for range in boot.memory() {
        log::debug!("memory {:#014x}..{:#014x} {:?}", range.start, range.end, range.kind);
    }
    let image = arch::image_range();
    let nodes = arch::boot::nodes();
    let kernel_memory = match boot.protocol {
        Protocol::Kickstart => {
            let is_memory = arch::is_direct_mapped;
            kickstart::kernel_memory(kip::servers(), kip::memory_descriptors(), image, is_memory)
                .map(|region| nodes.cut(region))
                .unwrap_or_else(|missing| panic!("cannot start the system: {missing}"))
        }
        // SAFETY: no other code of the kernel runs yet.
        Protocol::Multiboot1 | Protocol::Multiboot2 => unsafe { preparation::prepare(boot, image, nodes) }
            .unwrap_or_else(|obstacle| panic!("cannot start the system: {obstacle}")),
    };
    // SAFETY: nothing else runs yet; the kernel's memory is direct-mapped, and `prepare` gave it to
    // no other user.
    unsafe {
        kernel_memory.pieces().iter().for_each(|(piece, _)| reserved::add(*piece));
        memory::init(&kernel_memory);
    }
    report_memory(nodes, &kernel_memory);
    for (number, module) in boot.modules().iter().enumerate() {
        log::info!(
            "module {number}: {:#x}..{:#x} {}",
            module.start,
            module.end,
            boot.module_command_line(module)
        );
    }
    arch::boot::start_processors(boot);
    if !matches!(boot.protocol, Protocol::Kickstart) {
        // SAFETY: `prepare` has put the boot info there, for the kernel alone so far.
        let page = unsafe { core::slice::from_raw_parts_mut(boot_info_page(), boot_info::SIZE as usize) };
        if boot_info::add_nodes(page, nodes, arch::cpu_count()).is_err() {
            log::warning!("the boot info has no room for the nodes");
        }
        if let Some(table) = arch::boot::remapping_table()
            && boot_info::add_remapping(page, table).is_err()
        {
            log::warning!("the boot info has no room for the table of remapping units");
        }
    }
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
    arch::entry::start_scheduling()
}

/// The address at which the kernel writes the boot info.
fn boot_info_page() -> *mut u8 {
    arch::phys_to_virt(PhysAddr::new(kip::word(x2::kip::BOOT_INFO)))
}

/// Says what memory the kernel has, and in which nodes.
fn report_memory(nodes: &Nodes, kernel_memory: &Layout) {
    if let Some(complaint) = nodes.complaint {
        log::warning!("{complaint}: ignored");
    }
    if nodes.count() > 1 {
        log::info!("memory has {} nodes", nodes.count());
    }
    for (piece, node) in kernel_memory.pieces() {
        let (size, start) = (piece.size() >> 10, piece.start);
        if kernel_memory.nodes > 1 {
            log::info!("kernel memory: {size} KiB at {start:#x}, node {node}");
        } else {
            log::info!("kernel memory: {size} KiB at {start:#x}");
        }
    }
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

/// Fills in the rest of the kernel interface page. After this no boot memory may be taken: its
/// unused rest is given to sigma0.
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
        clock_scale: (features::has(Features::STEADY_TSC) || config::get().steady_tsc)
            .then(arch::clock_scale),
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
