//! The table of interrupts of the units between devices and memory, if the boot option asks for
//! one.
//!
//! The kernel has the memory of the table and writes its entries. Root finds the units, tells in
//! whose name each I/O APIC sends messages, has all units use the table, and says so. Units may
//! keep what they have read: root has them forget it after the entry of a message has changed.
//! (Entries of lines never change.)
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use x2::extension::TableRequest;

use super::boot::{memory, processors};
use super::local_apic::LOCAL_APIC;
use super::{io_apic, layout};
use crate::arch::interrupt_table::{self as format, ENTRY, Entry, Layout};
use crate::arch::local_apic::Access;
use crate::boot_cell::BootCell;
use crate::log;
use crate::memory::{PAGE_SIZE, PhysAddr};

struct Table {
    address: PhysAddr,
    layout: Layout,
}

static TABLE: BootCell<Option<Table>> = BootCell::new(None);
/// Whether the units use the table.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Makes the table, empty. Called at boot only, when the numbers of interrupts and processors are
/// known and boot memory may still be taken.
pub(super) fn init(messages: u32) {
    if LOCAL_APIC.0.is_x2apic() {
        // Entries have local APIC ids of 8 bits, which are those of the other mode.
        return log::warning!("there is no table of interrupts: the local APICs are in x2APIC mode");
    }
    let layout = Layout { messages, lines: io_apic::lines(), processors: processors::count() };
    let address = memory::allocate((ENTRY << layout.entries_log2()).div_ceil(PAGE_SIZE));
    // SAFETY: boot only, and no other reference is in use.
    unsafe { *TABLE.get_mut() = Some(Table { address, layout }) }
}

impl Table {
    fn entry(&self, index: u16) -> *mut u64 {
        layout::phys_to_virt(self.address.offset(u64::from(index) * ENTRY)).cast()
    }

    /// Changes an entry. Callers take turns, under the lock of SpaceOptions.
    fn write(&self, index: u16, [low, high]: [u64; 2]) {
        let entry = self.entry(index);
        // SAFETY: the entry is in the table, which is the kernel's own memory. It is not present
        // while it changes. A unit may look into memory and not into the processors' caches.
        unsafe {
            entry.write_volatile(0);
            entry.add(1).write_volatile(high);
            entry.write_volatile(low);
            asm!("clflush [{entry}]", "mfence", entry = in(reg) entry, options(nostack, preserves_flags));
        }
    }

    fn is_empty(&self, index: u16) -> bool {
        // SAFETY: as in `write`.
        unsafe { self.entry(index).read_volatile() == 0 }
    }

    fn set_source(&self, line: u32, source: u16) {
        let (vector, is_level) = io_apic::signal(line);
        for processor in 0..self.layout.processors {
            let destination = processors::local_apic_id(processor) as u8;
            let entry = Entry { vector, destination, is_level, source };
            self.write(self.layout.line(line, processor), entry.words());
        }
    }
}

/// Carries out root's request. `None`: there is no table or no such I/O APIC, or one has no source.
pub fn interrupt_table(request: TableRequest) -> Option<[u64; 2]> {
    let table = TABLE.get().as_ref()?;
    let has_no_source = |first_line: &u32| table.is_empty(table.layout.line(*first_line, 0));
    let without_source = || io_apic::first_lines().filter(has_no_source).count();
    match request {
        TableRequest::Tell => {}
        TableRequest::Lines { io_apic, source } => {
            io_apic::lines_of(io_apic)?.for_each(|line| table.set_source(line, source));
        }
        TableRequest::Use if without_source() > 0 => return None,
        TableRequest::Use => {
            // Relaxed: the caller holds the lock of SpaceOptions, under which messages are told. A
            // processor that moves a line at this moment may lose interrupts: no line has a handler
            // yet but the debugger's.
            IN_USE.store(true, Ordering::Relaxed);
            (0..table.layout.lines).for_each(|line| io_apic::direct(line, line_register(line, 0)));
        }
    }
    let register = format::table_register(table.address.value(), table.layout.entries_log2());
    Some([register, without_source() as u64])
}

fn in_use() -> Option<&'static Table> {
    if IN_USE.load(Ordering::Relaxed) { TABLE.get().as_ref() } else { None }
}

/// Makes `entry` the entry of a message, or no entry. Returns the address to which its source
/// writes.
pub(super) fn set_message(number: u32, entry: Option<Entry>) -> Option<u64> {
    let table = in_use()?;
    let index = table.layout.message(number);
    table.write(index, entry.map_or([0; 2], Entry::words));
    entry.map(|_| format::message_address(index))
}

/// The upper half of the I/O APIC's entry of a line that interrupts `processor`.
pub(super) fn line_register(line: u32, processor: u32) -> u32 {
    match in_use() {
        Some(table) => format::line_register(table.layout.line(line, processor)),
        None => processors::local_apic_id(processor) << 24,
    }
}
