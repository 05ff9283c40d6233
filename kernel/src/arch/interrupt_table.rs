//! The layout of the table by which a unit between devices and memory (Intel's "Virtualization
//! Technology for Directed I/O", chapters 5 and 9) turns what a function writes into an interrupt:
//! its entries, and the messages and I/O APIC entries that name one. An entry is valid for one
//! source: a PCI function, or an I/O APIC.

/// Bits of the lower word of an entry. Fixed delivery to one processor is all zeros.
const PRESENT: u64 = 1;
const LEVEL: u64 = 1 << 4;
const VECTOR_SHIFT: u32 = 16;
const DESTINATION_SHIFT: u32 = 40;
/// Bits of the upper word: all 16 bits of the source are compared (SVT = 1, SQ = 0).
const CHECK_SOURCE: u64 = 1 << 18;

/// The addresses to which messages go.
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;
/// Bits of a message's address: it names an entry.
const MESSAGE_NAMES_ENTRY: u64 = 1 << 4;
/// The same in the upper half of an I/O APIC's entry.
const LINE_NAMES_ENTRY: u32 = 1 << 16;

/// The bytes of an entry.
pub const ENTRY: u64 = 16;

/// What an entry of the table makes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The vector with which the processor is interrupted.
    pub vector: u8,
    /// The processor's local APIC id.
    pub destination: u8,
    /// The line is triggered by its level, not by an edge.
    pub is_level: bool,
    /// Whose messages may name the entry: bus, device and function, of 8, 5 and 3 bits.
    pub source: u16,
}

impl Entry {
    /// The entry's two words, the lower first.
    pub fn words(self) -> [u64; 2] {
        let low = PRESENT
            | if self.is_level { LEVEL } else { 0 }
            | u64::from(self.vector) << VECTOR_SHIFT
            | u64::from(self.destination) << DESTINATION_SHIFT;
        [low, CHECK_SOURCE | u64::from(self.source)]
    }
}

/// The address to which a function writes to name an entry, whatever it writes there. (Indices
/// are below 2^15: their highest bit would be elsewhere.)
pub fn message_address(index: u16) -> u64 {
    MESSAGE_ADDRESS | MESSAGE_NAMES_ENTRY | u64::from(index & 0x7fff) << 5
}

/// The upper half of an I/O APIC's entry that names an entry of the table. The lower half is as
/// without a table.
pub fn line_register(index: u16) -> u32 {
    LINE_NAMES_ENTRY | u32::from(index & 0x7fff) << 17
}

/// Which entry is whose: each message has one, and each line one for each processor, which never
/// changes. So a line moves to another processor without a change of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// How many message-signalled interrupts there are.
    pub messages: u32,
    /// How many lines there are.
    pub lines: u32,
    /// How many processors there are.
    pub processors: u32,
}

impl Layout {
    /// The entry of a message.
    pub fn message(self, number: u32) -> u16 {
        number as u16
    }

    /// The entry of a line that interrupts a processor.
    pub fn line(self, line: u32, processor: u32) -> u16 {
        (self.messages + processor * self.lines + line) as u16
    }

    /// The base-2 logarithm of the number of entries in the table, at least a page of them.
    pub fn entries_log2(self) -> u32 {
        (self.messages + self.processors * self.lines).next_power_of_two().max(256).ilog2()
    }
}

/// What the unit's register of the table's address must hold: entries with local APIC ids of 8
/// bits.
pub fn table_register(address: u64, entries_log2: u32) -> u64 {
    address | u64::from(entries_log2 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Bits `first` to `last` of an entry, in the numbers of the specification (9.10): 0 to 127.
    fn bits([low, high]: [u64; 2], first: u32, last: u32) -> u128 {
        let entry = u128::from(high) << 64 | u128::from(low);
        entry >> first & ((1 << (last - first + 1)) - 1)
    }

    proptest! {
        /// An entry has each field where the specification puts it, and zeros in all others.
        #[test]
        fn entries_are_as_specified(vector: u8, destination: u8, is_level: bool, source: u16) {
            let words = Entry { vector, destination, is_level, source }.words();
            let fields = [
                (0, 0, 1),                      // P: present
                (1, 1, 0),                      // FPD: faults are recorded
                (2, 2, 0),                      // DM: a physical destination
                (3, 3, 0),                      // RH: no redirection
                (4, 4, u128::from(is_level)),   // TM
                (5, 7, 0),                      // DLM: fixed
                (8, 15, 0),                     // available, reserved, IM: not posted
                (16, 23, u128::from(vector)),   // V
                (24, 39, 0),                    // reserved
                (40, 47, u128::from(destination)), // DST[15:8]: xAPIC
                (48, 63, 0),                    // reserved
                (64, 79, u128::from(source)),   // SID
                (80, 81, 0),                    // SQ: all bits of it
                (82, 83, 1),                    // SVT: are compared
                (84, 127, 0),                   // reserved
            ];
            for (first, last, value) in fields {
                prop_assert_eq!(bits(words, first, last), value, "bits {} to {}", first, last);
            }
            prop_assert_eq!(fields.iter().map(|(first, last, _)| last - first + 1).sum::<u32>(), 128);
        }

        /// Messages and I/O APIC entries name the entry, in the form that is remapped (5.1.2).
        #[test]
        fn handles_are_as_specified(index in 0u16..1 << 15) {
            let address = message_address(index);
            prop_assert_eq!(address >> 20, 0xfee);
            prop_assert_eq!(address >> 5 & 0x7fff, u64::from(index));
            prop_assert_eq!(address & 0x1f, 0x10, "remapped, no subhandle, index[15] = 0");
            let register = u64::from(line_register(index)) << 32;
            prop_assert_eq!(register >> 49, u64::from(index));
            prop_assert_eq!(register >> 32 & 0x1_ffff, 1 << 16, "remapped, the rest reserved");
        }

        /// No two interrupts share an entry, and the table has all of them.
        #[test]
        fn each_interrupt_has_an_entry(messages in 0u32..64, lines in 0u32..48, processors in 1u32..9) {
            let layout = Layout { messages, lines, processors };
            let mut entries: HashSet<u16> = (0..messages).map(|number| layout.message(number)).collect();
            entries.extend((0..processors).flat_map(|processor| {
                (0..lines).map(move |line| layout.line(line, processor))
            }));
            prop_assert_eq!(entries.len() as u32, messages + lines * processors);
            prop_assert!(entries.iter().all(|&index| u32::from(index) < 1 << layout.entries_log2()));
        }
    }

    #[test]
    fn the_largest_table_has_indices_of_15_bits() {
        for (messages, lines) in [(0, 205), (205, 0), (1, 204)] {
            let largest = Layout { messages, lines, processors: crate::kip::MAX_PROCESSORS as u32 };
            assert!(largest.entries_log2() <= 15);
        }
        let smallest = Layout { messages: 1, lines: 0, processors: 1 };
        assert_eq!(table_register(0x20_0000, smallest.entries_log2()), 0x20_0007, "2^(7 + 1) entries");
    }
}
