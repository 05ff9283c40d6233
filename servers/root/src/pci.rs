//! PCI functions: what their configuration space says about their registers, and how they interrupt
//! by messages (PCI Local Bus Specification 3.0, chapter 6).

use core::ops::Range;

/// Configuration space of a function, in words of 32 bits. The argument `register` is an offset in
/// bytes, a multiple of 4.
pub trait ConfigurationSpace {
    /// Reads a 32-bit word of the configuration space.
    fn read(&self, register: u8) -> u32;
    /// Writes a 32-bit word of the configuration space.
    fn write(&mut self, register: u8, value: u32);
}

/// Offsets of registers in configuration space.
const IDENTITY: u8 = 0;
const COMMAND: u8 = 4;
const CLASS: u8 = 8;
const HEADER: u8 = 0xc;
const BASE_ADDRESSES: u8 = 0x10;
const BUSES: u8 = 0x18;
const CAPABILITIES: u8 = 0x34;
/// Bits of the command register, which is the lower half of its word, and of the status register,
/// the upper half.
const DECODES: u32 = 3;
const MASTER: u32 = 4;
const NO_LINE: u32 = 1 << 10;
const STATUS: u32 = 0xffff << 16;
const HAS_CAPABILITIES: u32 = 1 << 20;
/// Identifiers of PCI capabilities: MSI, PCI Express and MSI-X.
const MSI: u8 = 5;
const EXPRESS: u8 = 0x10;
const MSI_X: u8 = 0x11;
/// Bits in the first word of the MSI and MSI-X capabilities.
const MSI_ON: u32 = 1 << 16;
const MSI_COUNT: u32 = 7 << 20;
const MSI_WIDE: u32 = 1 << 23;
const MSI_X_MASKED: u32 = 1 << 30;
const MSI_X_ON: u32 = 1 << 31;
/// The type of a port of PCI Express that is a bridge to conventional PCI.
pub const TO_CONVENTIONAL: u8 = 7;
/// The most capabilities that fit into configuration space: a list that is longer has a loop.
const MOST_CAPABILITIES: usize = 48;
/// Bytes in a page.
const PAGE: u64 = 4096;
/// Bytes in an entry of the MSI-X table.
pub const ENTRY: u64 = 16;

/// A range of addresses or ports at which a function has its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The registers are in memory.
    Memory {
        /// The physical address of the first register.
        base: u64,
        /// How many bytes the registers take.
        size: u64,
    },
    /// The registers are I/O ports.
    Ports {
        /// The first port of the range.
        first: u16,
        /// The last port of the range.
        last: u16,
    },
}

/// How a function sends message-signalled interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// The function sends one message (MSI).
    One {
        /// Offset of the MSI capability in configuration space.
        capability: u8,
    },
    /// The function has a table of messages (MSI-X).
    Table {
        /// Offset of the MSI-X capability in configuration space.
        capability: u8,
        /// How many entries the MSI-X table has.
        entries: u16,
        /// The physical address of the MSI-X table.
        table: u64,
    },
}

/// A PCI function, as its configuration space describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Vendor id in the low half, device id in the high half.
    pub identity: u32,
    /// Base class, sub-class and programming interface, each of 8 bits, from the highest down.
    pub class: u32,
    /// The function's registers, by the number of the base address register.
    pub regions: [Option<Region>; 6],
    /// How the function sends message-signalled interrupts, if it can.
    pub messages: Option<Messages>,
}

impl Function {
    /// Reads the configuration space of a function, if there is one. Afterwards the function cannot
    /// write memory, and so cannot send interrupt messages.
    pub fn find(space: &mut impl ConfigurationSpace) -> Option<Function> {
        let identity = space.read(IDENTITY);
        if identity & 0xffff == 0xffff {
            return None;
        }
        let regions = regions(space);
        let messages = messages(space, &regions);
        let class = space.read(CLASS) >> 8;
        let function = Function { identity, class, regions, messages };
        function.disable(space);
        Some(function)
    }

    /// How many different interrupt messages the function can send.
    pub fn message_count(&self) -> u16 {
        match self.messages {
            None => 0,
            Some(Messages::One { .. }) => 1,
            Some(Messages::Table { entries, .. }) => entries,
        }
    }

    /// Whether the physical pages are registers of the function, and none of them holds the MSI-X
    /// table: a driver that can write that table can raise any interrupt.
    pub fn may_map(&self, pages: &Range<u64>) -> bool {
        let holds = |region: &Region| match *region {
            // If the registers end within a page, the rest of the page may belong to another
            // function.
            Region::Memory { base, size } => size >= PAGE && base <= pages.start && pages.end <= base + size,
            Region::Ports { .. } => false,
        };
        let table = match self.messages {
            Some(Messages::Table { entries, table, .. }) => {
                table & !(PAGE - 1)..(table + u64::from(entries) * ENTRY).next_multiple_of(PAGE)
            }
            _ => 0..0,
        };
        let is_free = pages.end <= table.start || table.end <= pages.start;
        is_free && self.regions.iter().flatten().any(holds)
    }

    /// The range of ports of a base address register in which `first ..= last` lies.
    pub fn ports(&self, first: u16, last: u16) -> Option<(u16, u16)> {
        self.regions.iter().flatten().find_map(|region| match *region {
            Region::Ports { first: begin, last: end } if begin <= first && last <= end => Some((begin, end)),
            _ => None,
        })
    }

    /// Lets the function write memory and send message-signalled interrupts instead of using its
    /// interrupt line. For MSI, `address` and `data` are the message; for MSI-X, the table must
    /// have been written before.
    pub fn enable(&self, space: &mut impl ConfigurationSpace, address: u64, data: u32) {
        let command = space.read(COMMAND) & !STATUS;
        space.write(COMMAND, command | DECODES | MASTER | NO_LINE);
        match self.messages {
            None => {}
            Some(Messages::One { capability }) => {
                let control = space.read(capability) & !MSI_COUNT & !MSI_ON;
                space.write(capability, control);
                space.write(capability + 4, address as u32);
                if control & MSI_WIDE == 0 {
                    space.write(capability + 8, data);
                } else {
                    space.write(capability + 8, (address >> 32) as u32);
                    space.write(capability + 12, data);
                }
                space.write(capability, control | MSI_ON);
            }
            Some(Messages::Table { capability, .. }) => {
                let control = space.read(capability) & !MSI_X_MASKED;
                space.write(capability, control | MSI_X_ON);
            }
        }
    }

    /// Stops the function's interrupt messages.
    pub fn disable_messages(&self, space: &mut impl ConfigurationSpace) {
        match self.messages {
            None => {}
            Some(Messages::One { capability }) => {
                let control = space.read(capability);
                space.write(capability, control & !MSI_ON);
            }
            Some(Messages::Table { capability, .. }) => {
                let control = space.read(capability);
                space.write(capability, control & !MSI_X_ON);
            }
        }
    }

    /// Stops the function's interrupt messages and its accesses to memory.
    pub fn disable(&self, space: &mut impl ConfigurationSpace) {
        self.disable_messages(space);
        let command = space.read(COMMAND) & !STATUS;
        space.write(COMMAND, command & !MASTER);
    }
}

/// Returns the secondary bus of the function, if it is a PCI bridge, and whether the device has
/// more than one function.
pub fn kind(space: &impl ConfigurationSpace) -> (Option<u8>, bool) {
    let header = space.read(HEADER) >> 16 & 0xff;
    let bus = (header & 0x7f == 1).then(|| (space.read(BUSES) >> 8) as u8);
    (bus, header & 0x80 != 0)
}

/// The buses beyond the function, if it is a PCI bridge: from the first to the last.
pub fn buses_beyond(space: &impl ConfigurationSpace) -> Option<(u8, u8)> {
    let (first, _) = kind(space);
    first.map(|first| (first, (space.read(BUSES) >> 16) as u8))
}

/// What a function is in PCI Express (the type of its port), if it belongs to that.
pub fn express_port(space: &impl ConfigurationSpace) -> Option<u8> {
    let at = capabilities(space).find(|&(kind, _)| kind == EXPRESS).map(|(_, at)| at);
    at.map(|at| (space.read(at) >> 20) as u8 & 0xf)
}

fn regions(space: &mut impl ConfigurationSpace) -> [Option<Region>; 6] {
    let mut regions = [None; 6];
    if space.read(HEADER) >> 16 & 0x7f != 0 {
        return regions;
    }
    // The function must not decode its addresses while the size bits are read, for each base
    // address register holds ones then.
    let command = space.read(COMMAND) & !STATUS;
    space.write(COMMAND, command & !DECODES);
    let mut sized = |index: u8| {
        let register = BASE_ADDRESSES + 4 * index;
        let base = space.read(register);
        space.write(register, u32::MAX);
        let mask = space.read(register);
        space.write(register, base);
        (base, mask)
    };
    let mut index = 0;
    while index < 6 {
        let at = usize::from(index);
        let (base, mask) = sized(index);
        index += 1;
        if base & 1 == 1 {
            let (first, size) = ((base & 0xfffc) as u16, !(mask as u16 & 0xfffc));
            regions[at] = first
                .checked_add(size)
                .filter(|_| mask & 0xfffc != 0)
                .map(|last| Region::Ports { first, last });
            continue;
        }
        let (low, low_mask) = (u64::from(base & !0xf), u64::from(mask & !0xf));
        let (high, high_mask) = if base & 6 == 4 && index < 6 {
            let (high, mask) = sized(index);
            index += 1;
            (high, mask)
        } else {
            (0, u32::MAX)
        };
        let (base, mask) = (low | u64::from(high) << 32, low_mask | u64::from(high_mask) << 32);
        let size = (!mask).wrapping_add(1);
        let is_there = low_mask != 0 && base != 0 && size.is_power_of_two();
        regions[at] = (is_there && base.checked_add(size).is_some()).then_some(Region::Memory { base, size });
    }
    space.write(COMMAND, command);
    regions
}

/// The capabilities of a function: what each is, and its offset in configuration space.
fn capabilities(space: &impl ConfigurationSpace) -> impl Iterator<Item = (u8, u8)> {
    let has_some = space.read(COMMAND) & HAS_CAPABILITIES != 0;
    let mut at = if has_some { space.read(CAPABILITIES) as u8 & 0xfc } else { 0 };
    let found = core::iter::from_fn(move || {
        let here = at;
        if here < 0x40 {
            return None;
        }
        let word = space.read(here);
        at = (word >> 8) as u8 & 0xfc;
        Some((word as u8, here))
    });
    found.take(MOST_CAPABILITIES)
}

fn messages(space: &impl ConfigurationSpace, regions: &[Option<Region>; 6]) -> Option<Messages> {
    let of = |kind| capabilities(space).find(|&(other, _)| other == kind).map(|(_, at)| at);
    let table = of(MSI_X).and_then(|capability| {
        let entries = (space.read(capability) >> 16 & 0x7ff) as u16 + 1;
        let place = space.read(capability.checked_add(4)?);
        let (offset, size) = (u64::from(place & !7), u64::from(entries) * ENTRY);
        match regions.get((place & 7) as usize)? {
            Some(Region::Memory { base, size: all }) if offset + size <= *all => {
                Some(Messages::Table { capability, entries, table: base + offset })
            }
            _ => None,
        }
    });
    // The MSI capability takes up to four words, which must fit into configuration space.
    table.or_else(|| of(MSI).filter(|&at| at <= 0xf0).map(|capability| Messages::One { capability }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;

    /// A model of a configuration space, of which some bits can be written.
    struct Model {
        words: RefCell<[u32; 64]>,
        writable: [u32; 64],
    }

    impl ConfigurationSpace for Model {
        fn read(&self, register: u8) -> u32 {
            self.words.borrow()[usize::from(register / 4)]
        }

        fn write(&mut self, register: u8, value: u32) {
            assert_eq!(register % 4, 0);
            let at = usize::from(register / 4);
            let mut words = self.words.borrow_mut();
            words[at] = words[at] & !self.writable[at] | value & self.writable[at];
        }
    }

    fn model(words: &[(u8, u32, u32)]) -> Model {
        let mut model = Model { words: RefCell::new([0; 64]), writable: [0; 64] };
        for &(register, value, writable) in words {
            let at = usize::from(register / 4);
            (model.words.borrow_mut()[at], model.writable[at]) = (value, writable);
        }
        model
    }

    /// A function with memory of 64 KiB above 4 GiB, 32 ports, and the capabilities at 0x40 and
    /// 0x60.
    fn function(first: u32, second: u32) -> Model {
        model(&[
            (0, 0x11e8_1234, 0),
            (4, 0x10_0007, 0x507),
            (8, 0x0108_0207, 0),
            (0x10, 0xc, 0xffff_0000),
            (0x14, 2, u32::MAX),
            (0x18, 0xc001, 0xffe0),
            (0x34, 0x40, 0),
            (0x40, 0x6000 | first, 0x8071_0000),
            (0x44, 0x800, u32::MAX * u32::from(first as u8 == 5)),
            (0x48, 0, u32::MAX),
            (0x4c, 0, u32::MAX),
            (0x60, second, 0xc000_0000),
            (0x64, 0x1000, 0),
        ])
    }

    #[test]
    fn registers_and_a_single_message_are_found() {
        let mut space = function(5 | MSI_WIDE, 9);
        let found = Function::find(&mut space).unwrap();
        assert_eq!(found.class, 0x01_0802);
        let memory = Region::Memory { base: 2 << 32, size: 0x1_0000 };
        assert_eq!(
            found.regions[..3],
            [Some(memory), None, Some(Region::Ports { first: 0xc000, last: 0xc01f })]
        );
        assert_eq!(found.regions[3..], [None; 3]);
        assert_eq!(found.messages, Some(Messages::One { capability: 0x40 }));
        assert_eq!((space.read(4) & 0x7, space.read(0x10), space.read(0x14)), (3, 0xc, 2));
        found.enable(&mut space, 0x1_fee0_0000, 0x41);
        assert_eq!(space.read(0x40) & (MSI_ON | MSI_COUNT), MSI_ON);
        assert_eq!([space.read(0x44), space.read(0x48), space.read(0x4c)], [0xfee0_0000, 1, 0x41]);
        assert_eq!(space.read(4) & 0x407, 0x407);
        found.disable_messages(&mut space);
        assert_eq!((space.read(0x40) & MSI_ON, space.read(4) & MASTER), (0, MASTER));
        found.disable(&mut space);
        assert_eq!(space.read(4) & 0x407, 0x403);
        let pages = |first: u64, last: u64| (2 << 32) + (first << 12)..(2 << 32) + (last << 12);
        assert!(found.may_map(&pages(0, 16)) && !found.may_map(&pages(0, 17)));
        assert_eq!(found.ports(0xc004, 0xc007), Some((0xc000, 0xc01f)));
        assert_eq!(found.ports(0xc01f, 0xc020), None);
    }

    #[test]
    fn the_table_of_messages_is_never_mapped() {
        // MSI-X with 300 entries at offset 0x1000: the table fills two pages.
        let mut space = function(5, 0x11 | 299 << 16);
        let found = Function::find(&mut space).unwrap();
        let table = (2 << 32) + 0x1000;
        assert_eq!(found.messages, Some(Messages::Table { capability: 0x60, entries: 300, table }));
        let may =
            |first: u64, last: u64| found.may_map(&((2 << 32) + (first << 12)..(2 << 32) + (last << 12)));
        assert!(may(0, 1) && may(3, 16));
        assert!(!may(0, 2) && !may(1, 2) && !may(2, 3) && !may(2, 4) && !may(0, 16));
        found.enable(&mut space, 0, 0);
        assert_eq!(space.read(0x60) & (MSI_X_ON | MSI_X_MASKED), MSI_X_ON);
        found.disable(&mut space);
        assert_eq!(space.read(0x60) & MSI_X_ON, 0);
    }

    #[test]
    fn absent_functions_and_damaged_capabilities_are_not_used() {
        assert_eq!(Function::find(&mut model(&[(0, u32::MAX, 0)])), None);
        let found = Function::find(&mut model(&[(0, 0x1234, 0)])).unwrap();
        assert_eq!((found.regions, found.message_count()), ([None; 6], 0));
        // Broken configuration spaces: a list of capabilities with a loop, and a table outside the
        // registers.
        let mut circle = model(&[(4, 0x10_0000, 0), (0x34, 0x40, 0), (0x40, 0x4009, 0)]);
        assert_eq!(Function::find(&mut circle).unwrap().messages, None);
        let mut outside = function(9, 0x11 | 0x7ff << 16);
        outside.words.borrow_mut()[0x64 / 4] = 0xf000;
        assert_eq!(Function::find(&mut outside).unwrap().messages, None);
    }

    proptest! {
        #[test]
        fn no_function_stops_root(words in proptest::collection::vec(any::<(u32, u32)>(), 64)) {
            let list: Vec<_> = (0u8..).zip(words).map(|(at, (value, writable))| (at * 4, value, writable)).collect();
            let mut space = model(&list);
            if let Some(found) = Function::find(&mut space) {
                found.enable(&mut space, u64::MAX, u32::MAX);
                found.disable(&mut space);
                let _ = (found.may_map(&(0..PAGE)), found.ports(0, 1), found.message_count(), kind(&space));
            }
        }
    }
}
