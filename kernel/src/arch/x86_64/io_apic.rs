//! The I/O APICs: one redirection entry per interrupt line. Lines are ACPI's global system
//! interrupts.
use core::sync::atomic::{AtomicU32, Ordering};

use super::paging;
use crate::boot::acpi::{self, MAX_IO_APICS, Tables};
use crate::boot_cell::BootCell;
use crate::memory::{PAGE_SIZE, PhysAddr, PhysRange};
use crate::sync::SpinLock;

const VERSION: u32 = 1;
const REDIRECTION: u32 = 0x10;
const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const ACTIVE_LOW: u32 = 1 << 13;

#[derive(Clone, Copy)]
struct Controller {
    first_line: u32,
    lines: u32,
}

/// The register windows; index and data belong together, hence the lock.
struct Windows([u64; MAX_IO_APICS]);

static CONTROLLERS: BootCell<[Controller; MAX_IO_APICS]> =
    BootCell::new([Controller { first_line: 0, lines: 0 }; MAX_IO_APICS]);
static WINDOWS: SpinLock<Windows> = SpinLock::new(Windows([0; MAX_IO_APICS]));
static LINES: AtomicU32 = AtomicU32::new(0);

impl Windows {
    fn select(&self, controller: usize, register: u32) -> *mut u32 {
        let window = self.0[controller] as *mut u32;
        // SAFETY: the window is mapped for ever, and the lock keeps others from selecting
        // meanwhile.
        unsafe { window.write_volatile(register) }
        window.wrapping_byte_add(0x10)
    }

    fn read(&self, controller: usize, register: u32) -> u32 {
        // SAFETY: as in `select`.
        unsafe { self.select(controller, register).read_volatile() }
    }

    fn write(&self, controller: usize, register: u32, value: u32) {
        // SAFETY: as in `select`; the values are those that this module means.
        unsafe { self.select(controller, register).write_volatile(value) }
    }
}

/// Maps all controllers, masks every line, and directs them to `destination` with vectors from
/// `first_vector` on, one per line, as long as vectors below `end_vector` last. Calls `reserve`
/// with the memory of each.
pub(super) fn init(
    tables: &Tables,
    destination: u32,
    first_vector: u8,
    end_vector: u8,
    mut reserve: impl FnMut(PhysRange),
) {
    let mut windows = WINDOWS.lock();
    // SAFETY: boot only, and no other reference is in use.
    let controllers = unsafe { CONTROLLERS.get_mut() };
    let most = u32::from(end_vector - first_vector);
    for (index, acpi::IoApic { address, first_line }) in tables.io_apics().iter().copied().enumerate() {
        windows.0[index] = paging::map_device(address, PAGE_SIZE) as u64;
        let page = PhysAddr::new(address.value());
        reserve(PhysRange::new(page, page.offset(PAGE_SIZE)));
        let pins = (windows.read(index, VERSION) >> 16 & 0xff) + 1;
        let lines = pins.min(most.saturating_sub(first_line));
        controllers[index] = Controller { first_line, lines };
        for pin in 0..pins {
            windows.write(index, REDIRECTION + 2 * pin, MASKED);
        }
        for pin in 0..lines {
            let line = first_line + pin;
            let signal = tables.signal(line);
            let low = MASKED
                | if signal.level { LEVEL } else { 0 }
                | if signal.active_low { ACTIVE_LOW } else { 0 }
                | (u32::from(first_vector) + line);
            windows.write(index, REDIRECTION + 2 * pin + 1, destination << 24);
            windows.write(index, REDIRECTION + 2 * pin, low);
        }
        LINES.fetch_max(first_line + lines, Ordering::Relaxed);
    }
}

/// How many interrupt lines there are. Their numbers are below this number.
pub(super) fn lines() -> u32 {
    LINES.load(Ordering::Relaxed)
}

fn find(line: u32) -> Option<(usize, u32)> {
    let belongs = |controller: &Controller| {
        (controller.first_line..controller.first_line + controller.lines).contains(&line)
    };
    let index = CONTROLLERS.get().iter().position(belongs)?;
    Some((index, REDIRECTION + 2 * (line - CONTROLLERS.get()[index].first_line)))
}

/// Keeps the line from interrupting. Lines that no controller has are ignored.
pub(super) fn mask(line: u32) {
    if let Some((index, register)) = find(line) {
        let windows = WINDOWS.lock();
        windows.write(index, register, windows.read(index, register) | MASKED);
    }
}

/// Lets the line interrupt. Lines that no controller has are ignored.
pub(super) fn unmask(line: u32) {
    if let Some((index, register)) = find(line) {
        let windows = WINDOWS.lock();
        windows.write(index, register, windows.read(index, register) & !MASKED);
    }
}

/// Directs the line, which is masked, to the processor whose local APIC has this id, below 256.
/// Lines that no controller has are ignored.
pub(super) fn direct(line: u32, destination: u32) {
    if let Some((index, register)) = find(line) {
        WINDOWS.lock().write(index, register + 1, destination << 24);
    }
}
