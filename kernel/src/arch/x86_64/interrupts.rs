//! Interrupt vectors and what they mean.
//!
//! | vectors | what |
//! |---|---|
//! | 0..31 | exceptions |
//! | 32 | this processor's timer |
//! | 33 | another processor has left a request |
//! | 34..238 | the lines of the I/O APICs, then message-signalled interrupts |
//! | 239..254 | the old interrupt controllers, closed: only spurious ones |
//! | 255 | spurious, of the local APIC |
//!
//! Interrupts are taken in user mode and in [`super::wait_for_interrupt`]; both pass the vector to
//! [`take_interrupt`].
use core::sync::atomic::{AtomicU32, Ordering};

use x2::extension::MessageSource;

use super::features::{self, Features};
use super::local_apic::LOCAL_APIC;
use super::{boot, interrupt_table, io_apic, local_apic, pic};
use crate::arch::interrupt_table::Entry;
use crate::boot::acpi::{AcpiError, Tables};
use crate::boot::reserved;
use crate::{config, log};

const TIMER: u8 = 32;
const REQUEST: u8 = 33;
const FIRST_LINE: u8 = 34;
const OLD_CONTROLLERS: u8 = 239;
const SPURIOUS: u8 = 255;
/// The local APIC reports waiting interrupts in groups of 32 vectors.
const GROUP: u32 = 32;

/// How many message-signalled interrupts there are. Their vectors follow those of the lines. Set at
/// boot.
static MESSAGES: AtomicU32 = AtomicU32::new(0);
/// The groups of vectors that [`interrupt_pending`] looks at end here: messages are among them once
/// a device can know one.
static GROUPS_END: AtomicU32 = AtomicU32::new(2);

/// The address that a device writes to, to interrupt a processor.
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;
const MESSAGE_DESTINATION_SHIFT: u32 = 12;

/// What an interrupt of the processor means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interrupt {
    /// The timer that [`super::set_timer`] set.
    Timer,
    /// Another processor has sent a cross-processor request.
    Request,
    /// A device on this line, which is masked now.
    Line(u32),
    /// A device has sent the message-signalled interrupt of this number.
    Message(u32),
    /// An interrupt without a cause.
    Spurious,
}

/// Sets up the controllers: every line masked, one-shot timer stopped. Without usable ACPI tables
/// there are no lines. Messages have the vectors that are left, as many as are configured.
pub(super) fn init(tables: &Result<Tables, AcpiError>) {
    pic::disable(OLD_CONTROLLERS);
    assert!(features::has(Features::APIC), "this processor has no local APIC");
    if let Some(range) = local_apic::map() {
        // SAFETY: called at boot only, as `add` demands.
        unsafe { reserved::add(range) }
    }
    LOCAL_APIC.enable(TIMER, SPURIOUS);
    match tables {
        Ok(tables) => {
            let destination = LOCAL_APIC.id();
            io_apic::init(tables, destination, FIRST_LINE, OLD_CONTROLLERS, |range| {
                // SAFETY: called at boot only, as `add` demands.
                unsafe { reserved::add(range) }
            });
            log::info!(
                "interrupts: {} lines, {} processors in the firmware's tables",
                io_apic::lines(),
                tables.processors().len() + tables.processors_beyond
            );
        }
        Err(error) => {
            log::warning!("{error}: one processor, no interrupt lines (the old controllers are not used)");
        }
    }
    let left = u32::from(OLD_CONTROLLERS) - first_message();
    MESSAGES.store(config::get().messages.min(left), Ordering::Relaxed);
    GROUPS_END.store(first_message().div_ceil(GROUP).max(2), Ordering::Relaxed);
}

/// The vector of the first message.
fn first_message() -> u32 {
    u32::from(FIRST_LINE) + io_apic::lines()
}

/// Turns on the local APIC of a processor that is not the first.
pub(super) fn enable() {
    local_apic::follow_first();
    LOCAL_APIC.enable(TIMER, SPURIOUS);
}

/// Interrupts another processor, so that it carries out its cross-processor requests.
pub fn request_attention(processor: u32) {
    LOCAL_APIC.send_interrupt(boot::processors::local_apic_id(processor), REQUEST);
}

/// How many interrupt lines there are: their numbers are below.
pub fn interrupt_lines() -> u32 {
    io_apic::lines()
}

/// How many message-signalled interrupts there are: their numbers are below.
pub fn message_interrupts() -> u32 {
    MESSAGES.load(Ordering::Relaxed)
}

/// The address and the data of message `number`, which exists, for a device that is to interrupt
/// `processor` by it: fixed delivery, edge-triggered. If units use the table of interrupts, no
/// other source can interrupt by it from now on.
pub fn interrupt_message(number: u32, processor: u32, source: MessageSource) -> [u64; 2] {
    let vector = first_message() + number;
    // Relaxed: a processor that sees the old value only takes the interrupt later.
    GROUPS_END.fetch_max(vector / GROUP + 1, Ordering::Relaxed);
    let destination = boot::processors::local_apic_id(processor);
    let entry = match source {
        MessageSource::Unchecked => None,
        MessageSource::Function(source) => {
            Some(Entry { vector: vector as u8, destination: destination as u8, is_level: false, source })
        }
    };
    match interrupt_table::set_message(number, entry) {
        Some(address) => [address, 0],
        None => [MESSAGE_ADDRESS | u64::from(destination) << MESSAGE_DESTINATION_SHIFT, u64::from(vector)],
    }
}

/// Interrupts `processor` as a device does with message `number`, which exists.
pub fn raise_message(number: u32, processor: u32) {
    let vector = (first_message() + number) as u8;
    LOCAL_APIC.send_interrupt(boot::processors::local_apic_id(processor), vector);
}

/// Masks a line. One that no controller has is ignored.
pub fn mask_interrupt(line: u32) {
    io_apic::mask(line);
}

/// Lets a line interrupt. One that no controller has is ignored.
pub fn unmask_interrupt(line: u32) {
    io_apic::unmask(line);
}

/// Lets a line, which is masked, interrupt `processor` from now on. One that no controller has is
/// ignored.
pub fn direct_interrupt(line: u32, processor: u32) {
    io_apic::direct(line, interrupt_table::line_register(line, processor));
}

/// Interrupts `processor` as `line`, which exists, does.
pub fn raise_line(line: u32, processor: u32) {
    LOCAL_APIC.send_interrupt(boot::processors::local_apic_id(processor), FIRST_LINE + line as u8);
}

/// Acknowledges the interrupt that came with `vector` and says what it is. A line is masked before
/// it is acknowledged (ABI 13), so that it does not come again until [`unmask_interrupt`]. Messages
/// cannot be masked here.
pub fn take_interrupt(vector: u8) -> Interrupt {
    let interrupt = match vector {
        TIMER => Interrupt::Timer,
        REQUEST => Interrupt::Request,
        FIRST_LINE..OLD_CONTROLLERS => {
            let line = u32::from(vector - FIRST_LINE);
            match line.checked_sub(io_apic::lines()) {
                None => Interrupt::Line(line),
                Some(message) => Interrupt::Message(message),
            }
        }
        _ => return Interrupt::Spurious,
    };
    if let Interrupt::Line(line) = interrupt {
        mask_interrupt(line);
    }
    LOCAL_APIC.end_of_interrupt();
    interrupt
}

/// How many short steps (of about 50 instructions) of a long operation go by between two polls,
/// which read device registers.
pub const POLL_INTERVAL: u32 = 64;

/// Whether an interrupt waits, so that a long operation should stop at its preemption point.
#[inline]
pub fn interrupt_pending() -> bool {
    (1..GROUPS_END.load(Ordering::Relaxed)).any(|group| LOCAL_APIC.is_requested(group))
}
