//! The extensions to X.2: option numbers, message labels and the layout of MapControl's items.
//!
//! The reference is `docs/src/reference/extensions.md`; `docs/src/architecture.md` (K1, K8, K9,
//! K13, K15) says why.

use crate::Fpage;

/// Version of the extensions, in bits 0..15 of the KIP word at 0x218.
pub const VERSION: u64 = 1;

/// Label of a redirected system call.
pub const SYSTEM_CALL_LABEL: u64 = 0xffff_ffff_ff90;

/// An undefined instruction (UD2) at this distance after the emulation entry hands a bounced system
/// call on to the exception handler.
pub const FORWARD: u64 = 16;

/// Label of a delivered notification.
pub const NOTIFICATION_LABEL: u64 = 0xffff_ffff_ff70;

/// Exception number of a recalled thread's message.
pub const RECALLED: u64 = 256;

/// BR0 bit with which an open receive accepts a notification.
pub const ACCEPT_NOTIFICATION: u64 = 1 << 2;

/// Options of SpaceOptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum SpaceOption {
    /// Use and quota of kernel memory.
    Information = 0,
    /// The space's owner.
    Owner = 1,
    /// The quota of kernel memory.
    Quota = 2,
    /// What a foreign `syscall` does; see [`SystemCallMode`].
    SystemCallMode = 3,
    /// Where bounce mode continues.
    EmulationEntry = 4,
    /// Opens or closes another space to this one's threads.
    Open = 5,
    /// Whether MapControl tells the space physical addresses.
    PhysicalAddresses = 6,
    /// Address and data of a message-signalled interrupt.
    InterruptMessage = 7,
    /// The table of interrupts for units between devices and memory; see [`TableRequest`].
    InterruptTable = 8,
}

impl SpaceOption {
    /// The option with this number.
    pub const fn from_word(word: u64) -> Option<SpaceOption> {
        Some(match word {
            0 => SpaceOption::Information,
            1 => SpaceOption::Owner,
            2 => SpaceOption::Quota,
            3 => SpaceOption::SystemCallMode,
            4 => SpaceOption::EmulationEntry,
            5 => SpaceOption::Open,
            6 => SpaceOption::PhysicalAddresses,
            7 => SpaceOption::InterruptMessage,
            8 => SpaceOption::InterruptTable,
            _ => return None,
        })
    }
}

/// What may raise a message-signalled interrupt, as the second value of
/// [`SpaceOption::InterruptMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSource {
    /// Nothing whose messages are remapped. The answer is the message for what has others.
    Unchecked,
    /// The PCI function with this bus, device and function, of 8, 5 and 3 bits.
    Function(u16),
}

impl MessageSource {
    const FUNCTION: u64 = 1 << 16;

    /// The source that a value stands for.
    pub const fn from_word(word: u64) -> Option<MessageSource> {
        match word {
            0 => Some(MessageSource::Unchecked),
            _ if word >> 16 == 1 => Some(MessageSource::Function(word as u16)),
            _ => None,
        }
    }

    /// The value that stands for the source.
    pub const fn word(self) -> u64 {
        match self {
            MessageSource::Unchecked => 0,
            MessageSource::Function(place) => Self::FUNCTION | place as u64,
        }
    }
}

/// What [`SpaceOption::InterruptTable`] asks for: its two values. The answers are what a unit's
/// register of the table's address has to hold, and how many I/O APICs have no source yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableRequest {
    /// The answers only.
    Tell,
    /// The I/O APIC with this id sends its messages in the name of this source.
    Lines {
        /// The id, as the firmware's tables have it.
        io_apic: u8,
        /// Bus, device and function, of 8, 5 and 3 bits.
        source: u16,
    },
    /// All units use the table: lines and messages name entries of it from now on.
    Use,
}

impl TableRequest {
    /// The request that two values stand for.
    pub const fn from_words(words: [u64; 2]) -> Option<TableRequest> {
        match words {
            [0, 0] => Some(TableRequest::Tell),
            [1, word] if word >> 24 == 0 => {
                Some(TableRequest::Lines { io_apic: (word >> 16) as u8, source: word as u16 })
            }
            [2, 0] => Some(TableRequest::Use),
            _ => None,
        }
    }

    /// The two values that stand for the request.
    pub const fn words(self) -> [u64; 2] {
        match self {
            TableRequest::Tell => [0, 0],
            TableRequest::Lines { io_apic, source } => [1, (io_apic as u64) << 16 | source as u64],
            TableRequest::Use => [2, 0],
        }
    }
}

/// How many bytes of kernel memory a space may use: fewer than [`END`](Self::END), or no limit of
/// its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota(u64);

impl Quota {
    /// No limit.
    pub const UNLIMITED: Quota = Quota(u64::MAX);

    /// The first number of bytes that is no valid quota. An owner's account, which holds the sum of
    /// what was taken out of it, counts up to twice as many.
    pub const END: u64 = 1 << 47;

    /// The quota that a word of a call means.
    pub const fn from_word(word: u64) -> Option<Quota> {
        if word < Self::END || word == u64::MAX { Some(Quota(word)) } else { None }
    }

    /// The word that means this value.
    pub const fn word(self) -> u64 {
        self.0
    }
}

/// What a `syscall` instruction outside the stub page does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum SystemCallMode {
    /// Exception 6.
    #[default]
    None = 0,
    /// A message to the exception handler.
    Exception = 1,
    /// Continues at the space's emulation entry.
    Bounce = 2,
}

impl SystemCallMode {
    /// The mode with this number.
    pub const fn from_word(word: u64) -> Option<SystemCallMode> {
        Some(match word {
            0 => SystemCallMode::None,
            1 => SystemCallMode::Exception,
            2 => SystemCallMode::Bounce,
            _ => return None,
        })
    }
}

/// Label of the answer to a redirected system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum SystemCallAnswer {
    /// Return with RAX = MR1.
    Return = 0,
    /// Make the call again.
    Restart = 1,
    /// Load all registers from MR1..MR20.
    Registers = 2,
    /// Continue with the registers that ThreadState has left.
    Resume = 3,
}

impl SystemCallAnswer {
    /// The answer with this label.
    pub const fn from_label(label: u64) -> Option<SystemCallAnswer> {
        Some(match label {
            0 => SystemCallAnswer::Return,
            1 => SystemCallAnswer::Restart,
            2 => SystemCallAnswer::Registers,
            3 => SystemCallAnswer::Resume,
            _ => return None,
        })
    }
}

/// Control bits of ThreadState.
pub mod thread_state {
    /// Read the integer registers into MR1..MR20.
    pub const READ_REGISTERS: u64 = 1 << 0;
    /// Write the integer registers from MR1..MR20.
    pub const WRITE_REGISTERS: u64 = 1 << 1;
    /// Read the extended state into the buffer.
    pub const READ_EXTENDED: u64 = 1 << 2;
    /// Write the extended state from the buffer.
    pub const WRITE_EXTENDED: u64 = 1 << 3;
    /// Recall the thread.
    pub const RECALL: u64 = 1 << 4;
    /// Set the exception handler to MR21.
    pub const SET_EXCEPTION_HANDLER: u64 = 1 << 5;
    /// Set the pager to MR22.
    pub const SET_PAGER: u64 = 1 << 6;
    /// Read the breakpoints into MR23..MR28.
    pub const READ_BREAKPOINTS: u64 = 1 << 7;
    /// Write the breakpoints from MR23..MR27.
    pub const WRITE_BREAKPOINTS: u64 = 1 << 8;
    /// All defined bits.
    pub const ALL: u64 = (1 << 9) - 1;
    /// Message register of the first of four breakpoints' addresses, as in DR0 to DR3.
    pub const BREAKPOINT_ADDRESSES: usize = 23;
    /// Message register: which breakpoints are enabled, their conditions and sizes, as in DR7.
    pub const BREAKPOINT_CONTROL: usize = 27;
    /// Message register: why the thread's last debug exception came, as in DR6.
    pub const BREAKPOINT_STATUS: usize = 28;
    /// Result state, bit 4: halted. (Bits 0..3 are Schedule's state codes.)
    pub const IS_HALTED: u64 = 1 << 4;
    /// Result state: waits for the answer to a message that the kernel made in its name.
    pub const AWAITS_ANSWER: u64 = 1 << 5;
    /// Result state: a recall is pending.
    pub const RECALL_PENDING: u64 = 1 << 6;
    /// Result state: it has used x87, SSE or AVX, or been given their registers; otherwise these
    /// are initial.
    pub const HAS_EXTENDED_STATE: u64 = 1 << 7;
}

/// Operations of a MapControl item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum MapOperation {
    /// Report, and clear what is asked for.
    Query = 0,
    /// Map from the caller's memory.
    Map = 1,
    /// Reduce rights.
    Protect = 2,
    /// Unmap.
    Unmap = 3,
}

/// The maximum number of items of one MapControl.
pub const MAX_MAP_ITEMS: u64 = 512;

/// MapControl's number with one item in registers: the item's control word is in the lower bits.
pub const ONE_MAP_ITEM: u64 = 1 << 63;

/// One item of a MapControl batch, as it lies in the caller's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct MapItem {
    /// Target fpage: base, size of one page, rights.
    pub target: u64,
    /// Operation, what to clear, and the number of pages.
    pub control: u64,
    /// Source address in the caller's space.
    pub source: u64,
    /// Written by the kernel; see [`MapAnswer`].
    pub answer: u64,
}

impl MapItem {
    /// Clear the referenced status.
    pub const CLEAR_REFERENCED: u64 = 1 << 2;
    /// Clear the dirty status.
    pub const CLEAR_DIRTY: u64 = 1 << 3;
    const COUNT_SHIFT: u32 = 16;

    /// An item for `count` pages of `target`'s size from `target` on.
    pub const fn new(operation: MapOperation, target: Fpage, count: u32, source: u64) -> MapItem {
        let control = operation as u64 | (count as u64) << Self::COUNT_SHIFT;
        MapItem { target: target.raw(), control, source, answer: 0 }
    }

    /// This item, but it also clears status bits: [`MapItem::CLEAR_REFERENCED`],
    /// [`MapItem::CLEAR_DIRTY`].
    pub const fn clearing(mut self, status: u64) -> MapItem {
        self.control |= status & (Self::CLEAR_REFERENCED | Self::CLEAR_DIRTY);
        self
    }

    /// The operation.
    pub const fn operation(&self) -> MapOperation {
        match self.control & 3 {
            0 => MapOperation::Query,
            1 => MapOperation::Map,
            2 => MapOperation::Protect,
            _ => MapOperation::Unmap,
        }
    }

    /// How many pages: at least 1.
    pub const fn count(&self) -> u32 {
        let count = (self.control >> Self::COUNT_SHIFT) as u32;
        if count == 0 { 1 } else { count }
    }

    /// Whether bits that must be 0 are.
    pub const fn is_well_formed(&self) -> bool {
        self.control & !(0xf | 0xffff_ffff << Self::COUNT_SHIFT) == 0
    }
}

/// The answer word of a query, protect or unmap item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapAnswer(pub u64);

impl MapAnswer {
    /// Some page of the run is mapped.
    pub const MAPPED: u64 = 1 << 3;
    /// Some page has been referenced.
    pub const REFERENCED: u64 = 1 << 4;
    /// Some page has been written.
    pub const DIRTY: u64 = 1 << 5;

    /// The union of the pages' rights, as in an fpage.
    pub const fn rights(self) -> u64 {
        self.0 & 7
    }

    /// Whether some page of the run is mapped.
    pub const fn is_mapped(self) -> bool {
        self.0 & Self::MAPPED != 0
    }

    /// Whether some page has been referenced.
    pub const fn is_referenced(self) -> bool {
        self.0 & Self::REFERENCED != 0
    }

    /// Whether some page has been written.
    pub const fn is_dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }

    /// The physical address, or 0.
    pub const fn physical_address(self) -> u64 {
        self.0 & 0x000f_ffff_ffff_f000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_negative_numbers_of_the_reference() {
        assert_eq!(SYSTEM_CALL_LABEL, ((-7i64) << 4) as u64 & 0xffff_ffff_ffff);
        assert_eq!(NOTIFICATION_LABEL, ((-9i64) << 4) as u64 & 0xffff_ffff_ffff);
    }

    #[test]
    fn numbers_round_trip() {
        for word in 0..20 {
            assert!(SpaceOption::from_word(word).is_none_or(|option| option as u64 == word));
            assert!(SystemCallMode::from_word(word).is_none_or(|mode| mode as u64 == word));
            assert!(SystemCallAnswer::from_label(word).is_none_or(|answer| answer as u64 == word));
        }
        assert_eq!((0..20).filter_map(SpaceOption::from_word).count(), 9);
    }

    #[test]
    fn items_are_32_bytes_and_give_back_what_was_put_in() {
        assert_eq!((size_of::<MapItem>(), align_of::<MapItem>()), (32, 32));
        let target = Fpage::from_raw(0x4000 | 12 << 4 | 6);
        let item = MapItem::new(MapOperation::Protect, target, 70_000, 0).clearing(MapItem::CLEAR_DIRTY);
        assert_eq!(
            (item.operation(), item.count(), item.target),
            (MapOperation::Protect, 70_000, target.raw())
        );
        assert!(item.is_well_formed());
        assert_eq!(MapItem::new(MapOperation::Unmap, target, 0, 0).count(), 1);
        assert!(!MapItem { control: 1 << 48, ..item }.is_well_formed());
        assert!(!MapItem { control: 1 << 4, ..item }.is_well_formed());
    }

    #[test]
    fn answers_are_read_by_their_bits() {
        let answer = MapAnswer(0x1234_5000 | MapAnswer::MAPPED | MapAnswer::DIRTY | 5);
        assert!(answer.is_mapped() && answer.is_dirty() && !answer.is_referenced());
        assert_eq!((answer.rights(), answer.physical_address()), (5, 0x1234_5000));
    }
}
