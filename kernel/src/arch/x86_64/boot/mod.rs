//! The start of the machine: from the loader's 32-bit entry to the kernel proper.
pub mod memory;
pub mod processors;

use core::arch::{asm, global_asm};

use super::instructions::read_time_stamp;
use super::{
    cpu_local, extended_state, features, idt, interrupt_table, interrupts, layout, paging, serial, time,
};
use x2::boot_info::Screen;

use crate::boot::acpi::{self, AcpiError, Tables};
use crate::boot::nodes::Nodes;
use crate::boot::{
    BootInformation, PhysicalMemory, Protocol, kickstart, multiboot1, multiboot2, option_modules,
};
use crate::boot_cell::BootCell;
use crate::memory::{PhysAddr, PhysRange};
use crate::{arch, config, kip, log, screen};

global_asm!(include_str!("start.S"));

/// What the first page tables map: below this, the loader's structures can be read.
const REACHABLE: u64 = 4 << 30;

/// Modules of the command line lie below this address: boot memory suffices for the page tables of
/// the direct map up to here, in 2 MiB pages.
const MODULE_REACH: u64 = 1 << 40;

static INFORMATION: BootCell<BootInformation> = BootCell::new(BootInformation::empty(Protocol::Kickstart));

static TABLES: BootCell<Result<Tables, AcpiError>> = BootCell::new(Err(AcpiError::NoRoot));

/// Memory through the boot page tables' direct map.
struct BootMap;

impl PhysicalMemory for BootMap {
    fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let end = address.checked_add(length as u64)?;
        // SAFETY: the first 4 GiB are mapped, and reading them has no effect; nothing writes to the
        // loader's structures while they are parsed.
        (end <= REACHABLE).then(|| unsafe {
            core::slice::from_raw_parts(layout::phys_to_virt(PhysAddr::new(address)), length)
        })
    }
}

/// The first Rust code, called by `start.S` on the boot stack and the boot page tables.
#[unsafe(no_mangle)]
extern "C" fn boot_entry(magic: u32, address: u32, displacement: u32) -> ! {
    layout::set_displacement(u64::from(displacement));
    memory::init();
    idt::init();
    // SAFETY: the table is filled. Until cpu_local::init no task state is loaded: a fault is
    // reported on the boot stack.
    unsafe { idt::load() }
    serial::init();
    // SAFETY: nothing else runs yet, and no other reference exists.
    let information = unsafe { INFORMATION.get_mut() };
    let parsed = match magic {
        multiboot1::MAGIC => multiboot1::parse(&BootMap, u64::from(address), information),
        multiboot2::MAGIC => multiboot2::parse(&BootMap, u64::from(address), information),
        _ => {
            let descriptors = kip::memory_descriptors();
            kickstart::parse(&BootMap, descriptors, kip::word(x2::kip::BOOT_INFO), information);
            Ok(())
        }
    };
    find_text_screen(information);
    // What is below this is mapped already, and again by the final page tables.
    show_screen(information, |start, size| {
        (start + size <= REACHABLE).then(|| layout::phys_to_virt(PhysAddr::new(start)))
    });
    // SAFETY: this runs once, and no other code of the kernel runs yet.
    unsafe { config::init(information.command_line()) }
    let first_line = read_time_stamp();
    log::info!("Macadamia {}: booted by {:?}", env!("CARGO_PKG_VERSION"), information.protocol);
    log::debug!("{} ticks of the time-stamp counter from entry to the first line", first_line - entry_time());
    if let Err(error) = parsed {
        panic!("cannot boot: {error}");
    }
    if let Some(loss) = information.loss() {
        log::warning!("{loss}");
    }
    let reach = features::physical_reach().min(MODULE_REACH);
    option_modules::add(information, reach, arch::image_range(), |value, refusal| {
        log::warning!("{}={value}: {refusal}: ignored", option_modules::NAME);
    });
    // The firmware's tables may lie in memory that the final page tables do not map.
    // SAFETY: nothing else runs yet.
    unsafe { *TABLES.get_mut() = acpi::read(&BootMap, information.rsdp) }
    features::detect();
    features::enable();
    features::log_features();
    // SAFETY: once, on the boot page tables; then once for this processor, on the final ones.
    let stack_top = unsafe {
        screen::forget();
        paging::init(information);
        let stack_top = cpu_local::prepare(0, || memory::allocate(1));
        cpu_local::load(0);
        stack_top
    };
    show_screen(information, |start, size| Some(paging::map_device(PhysAddr::new(start), size)));
    idt::use_fault_stack();
    // SAFETY: the stack is fresh and mapped; nothing on the boot stack is needed any more, since
    // `start` does not return and its argument is static. The zero ends the chain of frame
    // pointers.
    unsafe {
        asm!("mov rsp, {stack}", "xor ebp, ebp", "call {start}", "ud2", stack = in(reg) stack_top,
             start = sym on_kernel_stack, options(noreturn))
    }
}

/// Shows what the kernel says on the screen, if there is one and `map` says where its memory is.
fn show_screen(information: &BootInformation, map: impl FnOnce(u64, u64) -> Option<*mut u8>) {
    if let Some(screen) = &information.screen
        && let Some(start) = map(screen.physical, screen::used(screen))
    {
        // SAFETY: nothing else runs yet, and `map` has said where the memory is.
        unsafe { screen::show_at(start, screen) }
    }
}

/// If the loader has said nothing of a screen: the VGA's text mode, in which the firmware has left
/// it, if memory is there.
fn find_text_screen(information: &mut BootInformation) {
    const PATTERN: u16 = 0x0755;
    if information.screen.is_some() || information.protocol == Protocol::Kickstart {
        return;
    }
    let first = layout::phys_to_virt(PhysAddr::new(Screen::TEXT.physical)).cast::<u16>();
    // SAFETY: the address is mapped, and is that of a VGA's memory or of none.
    let is_there = unsafe {
        first.write_volatile(PATTERN);
        first.read_volatile() == PATTERN
    };
    if is_there {
        information.screen = Some(Screen::TEXT);
    }
}

/// The machine's memory nodes.
pub fn nodes() -> &'static Nodes {
    static ONE: Nodes = Nodes::ONE;
    TABLES.get().as_ref().map_or(&ONE, |tables| &tables.nodes)
}

/// The firmware's table of units between devices and memory (DMAR), if there is one.
pub fn remapping_table() -> Option<PhysRange> {
    TABLES.get().as_ref().ok()?.remapping
}

/// Starts the other processors, and makes what depends on their number. Called once, when the
/// kernel's allocator works; boot memory may still be taken.
pub fn start_processors(boot: &BootInformation) {
    if let Ok(tables) = TABLES.get() {
        processors::start(boot, tables);
        if config::get().interrupt_remapping && tables.remapping.is_some() {
            interrupt_table::init(interrupts::message_interrupts());
        }
    }
}

/// The time-stamp counter when the kernel was entered.
fn entry_time() -> u64 {
    unsafe extern "C" {
        static boot_entry_time: u64;
    }
    // SAFETY: `start.S` wrote the static before any Rust code ran; it is constant since.
    unsafe { boot_entry_time }
}

extern "C" fn on_kernel_stack() -> ! {
    extended_state::init();
    interrupts::init(TABLES.get());
    time::init(TABLES.get().as_ref().ok());
    // SAFETY: `boot_entry` is done with it, and nothing else runs.
    crate::start::start(unsafe { INFORMATION.get_mut() })
}
