//! Generic boot info (ABI 1.8, X.2 rules 12.12-12.13): a header and a chain of records, all of
//! 64-bit words. Offsets are in bytes, addresses physical.

/// First word.
pub const MAGIC: u64 = 0x14b0_021d;
/// Second word.
pub const VERSION: u64 = 1;
/// Where the records begin when the header is followed directly by them.
pub const HEADER_SIZE: usize = 0x40;

/// Record type: a module.
pub const MODULE: u64 = 0x0001;
/// Record type: a loaded program.
pub const SIMPLE_EXEC: u64 = 0x0002;
/// Record type: memory nodes. Macadamia's own: other kernels' root tasks pass it over.
pub const NODES: u64 = 0x4d01;
/// Record type: the screen. Macadamia's own: other kernels' root tasks pass it over.
pub const SCREEN: u64 = 0x4d02;
/// Record type: where the firmware's table of units between devices and memory (DMAR) is.
/// Macadamia's own: other kernels' root tasks pass it over.
pub const REMAPPING: u64 = 0x4d03;
/// Record type: EFI tables.
pub const EFI_TABLES: u64 = 0x0101;
/// Record type: the boot loader's Multiboot information.
pub const MULTIBOOT: u64 = 0x0102;

/// A record that this module understands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// A module: physical `start`, `size` in bytes, command line.
    Module {
        /// First address.
        start: u64,
        /// Size in bytes.
        size: u64,
        /// Command line without the final NUL.
        command_line: &'a [u8],
    },
    /// A loaded program: sigma0 and the root task.
    SimpleExec {
        /// What the loader says about the program.
        program: SimpleExec,
        /// Command line without the final NUL.
        command_line: &'a [u8],
    },
    /// Which memory and processors belong together.
    Nodes(Nodes<'a>),
    /// The machine's screen, as the boot loader or the firmware has set it up.
    Screen(Screen),
    /// The firmware's table of units between devices and memory (DMAR).
    Remapping {
        /// The physical address of the table.
        start: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// Physical address of the Multiboot information.
    Multiboot(u64),
    /// A type or version that this module does not know.
    Other(u64),
}

/// Where a part of a loaded program lies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Segment {
    /// Physical address.
    pub physical: u64,
    /// Virtual address.
    pub virtual_address: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Body of a SimpleExec record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SimpleExec {
    /// Text.
    pub text: Segment,
    /// Data.
    pub data: Segment,
    /// Zero-initialised data.
    pub bss: Segment,
    /// Entry.
    pub initial_ip: u64,
    /// 1 = 32-bit ELF, 2 = 64-bit ELF.
    pub flags: u64,
    /// Free for the user.
    pub label: u64,
}

/// Body of a Screen record: memory in which the pixels are, or the characters of the VGA's text
/// mode.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Screen {
    /// Physical address of the first line.
    pub physical: u64,
    /// Bytes from a line to the next.
    pub pitch: u64,
    /// Pixels in a line, or characters.
    pub width: u64,
    /// Lines, of pixels or of characters.
    pub height: u64,
    /// Bits of a pixel; 0: the text mode, in which two bytes are a character and its colours.
    pub bits: u64,
    /// Where the colours are in a pixel: for red, green and blue, in this order from the low byte
    /// on, the place of the lowest bit, and how many bits there are, a byte each.
    pub colours: u64,
}

impl Screen {
    /// The VGA's text mode, in which firmware starts.
    pub const TEXT: Screen =
        Screen { physical: 0xb_8000, pitch: 160, width: 80, height: 25, bits: 0, colours: 0 };

    /// Whether the memory holds characters, not pixels.
    pub fn is_text(&self) -> bool {
        self.bits == 0
    }

    /// Bytes of the screen's memory; 0 if no memory can be so large.
    pub fn size(&self) -> u64 {
        self.pitch.checked_mul(self.height).unwrap_or(0)
    }

    fn words(&self) -> [u64; 6] {
        [self.physical, self.pitch, self.width, self.height, self.bits, self.colours]
    }
}

/// Memory of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeMemory {
    /// The node's number.
    pub node: u64,
    /// First physical address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Body of a Nodes record: the number of nodes, of processors and of ranges, the ranges, and a
/// string of bytes with the distances and the processors' nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nodes<'a> {
    ranges: &'a [u8],
    distances: &'a [u8],
    processors: &'a [u8],
    count: usize,
}

/// Where the ranges of a Nodes record begin.
const NODES_RANGES: usize = 0x38;

impl<'a> Nodes<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let number = |offset| usize::try_from(word(bytes, offset)?).ok();
        let (count, processors, ranges) = (number(0x18)?, number(0x20)?, number(0x28)?);
        let ranges = bytes.get(NODES_RANGES..)?.get(..ranges.checked_mul(24)?)?;
        let distances = bytes.get(number(0x30)?..)?;
        let (distances, rest) = distances.split_at_checked(count.checked_mul(count)?)?;
        Some(Self { ranges, distances, processors: rest.get(..processors)?, count })
    }

    /// The number of nodes. Their numbers are below it.
    pub fn count(self) -> usize {
        self.count
    }

    /// The memory that belongs to nodes, as the firmware says: with what is not usable, or not
    /// there.
    pub fn memory(self) -> impl Iterator<Item = NodeMemory> {
        self.ranges.chunks_exact(24).map(|range| {
            let word = |offset| word(range, offset).unwrap_or(0);
            NodeMemory { node: word(0), start: word(8), size: word(16) }
        })
    }

    /// The node of a processor that runs.
    pub fn of_processor(self, number: usize) -> Option<u8> {
        self.processors.get(number).copied()
    }

    /// The distance of `to` from `from` (10 from itself; ACPI 6.5, 5.2.17).
    pub fn distance(self, from: usize, to: usize) -> Option<u8> {
        if from.max(to) >= self.count {
            return None;
        }
        self.distances.get(from * self.count + to).copied()
    }
}

/// Boot info that was found well formed as far as its header goes. Everything in it is checked
/// while it is read: a broken chain ends the iteration.
#[derive(Clone, Copy, Debug)]
pub struct BootInfo<'a> {
    bytes: &'a [u8],
    first: usize,
    count: u64,
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let end = offset.checked_add(8)?;
    Some(u64::from_le_bytes(bytes.get(offset..end)?.try_into().ok()?))
}

impl<'a> BootInfo<'a> {
    /// Total size that the header in `bytes` announces, if it is a header of boot info: read one
    /// page first, then the rest.
    pub fn announced_size(bytes: &[u8]) -> Option<u64> {
        if word(bytes, 0)? != MAGIC || word(bytes, 8)? != VERSION {
            return None;
        }
        word(bytes, 16)
    }

    /// The boot info at the start of `bytes`, or nothing if there is none or it is larger than
    /// `bytes`.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let size = usize::try_from(Self::announced_size(bytes)?).ok()?;
        let first = usize::try_from(word(bytes, 24)?).ok()?;
        let count = word(bytes, 32)?;
        Some(Self { bytes: bytes.get(..size)?, first, count })
    }

    /// The records, in order.
    pub fn records(self) -> impl Iterator<Item = Record<'a>> {
        let mut next = Some(self.first);
        let mut left = self.count;
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            left -= 1;
            let start = next?;
            let bytes = self.bytes.get(start..)?;
            let record = parse(bytes)?;
            let distance = usize::try_from(word(bytes, 16)?).ok()?;
            next = if distance == 0 { None } else { start.checked_add(distance) };
            Some(record)
        })
    }

    /// The modules with their command lines, in order: those the boot loader was given after the
    /// root task.
    pub fn modules(self) -> impl Iterator<Item = (u64, u64, &'a [u8])> {
        self.records().filter_map(|record| match record {
            Record::Module { start, size, command_line } => Some((start, size, command_line)),
            _ => None,
        })
    }
}

fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    let kind = word(bytes, 0)?;
    if word(bytes, 8)? != 1 {
        return Some(Record::Other(kind));
    }
    let segment = |offset| {
        Some(Segment {
            physical: word(bytes, offset)?,
            virtual_address: word(bytes, offset + 8)?,
            size: word(bytes, offset + 16)?,
        })
    };
    Some(match kind {
        MODULE => Record::Module {
            start: word(bytes, 0x18)?,
            size: word(bytes, 0x20)?,
            command_line: command_line(bytes, 0x28)?,
        },
        SIMPLE_EXEC => Record::SimpleExec {
            program: SimpleExec {
                text: segment(0x18)?,
                data: segment(0x30)?,
                bss: segment(0x48)?,
                initial_ip: word(bytes, 0x60)?,
                flags: word(bytes, 0x68)?,
                label: word(bytes, 0x70)?,
            },
            command_line: command_line(bytes, 0x78)?,
        },
        MULTIBOOT => Record::Multiboot(word(bytes, 0x18)?),
        REMAPPING => Record::Remapping { start: word(bytes, 0x18)?, size: word(bytes, 0x20)? },
        NODES => Record::Nodes(Nodes::parse(bytes)?),
        SCREEN => Record::Screen(Screen {
            physical: word(bytes, 0x18)?,
            pitch: word(bytes, 0x20)?,
            width: word(bytes, 0x28)?,
            height: word(bytes, 0x30)?,
            bits: word(bytes, 0x38)?,
            colours: word(bytes, 0x40)?,
        }),
        other => Record::Other(other),
    })
}

/// The string whose offset from the record's start is the word at `offset`; 0 = no string.
fn command_line(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let start = usize::try_from(word(bytes, offset)?).ok()?;
    if start == 0 {
        return Some(&[]);
    }
    let string = bytes.get(start..)?;
    Some(&string[..string.iter().position(|&byte| byte == 0)?])
}

/// Writes boot info into memory, record by record.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    end: usize,
    last_record: Option<usize>,
    count: u64,
}

/// The memory given to a [`Writer`] is too small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfSpace;

impl<'a> Writer<'a> {
    /// Starts boot info in `bytes`, which it clears.
    pub fn new(bytes: &'a mut [u8]) -> Result<Self, OutOfSpace> {
        bytes.fill(0);
        if bytes.len() < HEADER_SIZE {
            return Err(OutOfSpace);
        }
        Ok(Self { bytes, end: HEADER_SIZE, last_record: None, count: 0 })
    }

    /// Goes on with boot info that was [finished](Self::finish) in `bytes`; nothing if there is
    /// none.
    pub fn resume(bytes: &'a mut [u8]) -> Option<Self> {
        let info = BootInfo::new(bytes)?;
        let (end, count, mut last) = (info.bytes.len(), info.count, info.first);
        for _ in 1..count {
            last = last.checked_add(usize::try_from(word(bytes, last.checked_add(16)?)?).ok()?)?;
        }
        Some(Self { bytes, end, last_record: (count > 0).then_some(last), count })
    }

    /// Adds memory nodes: their memory, the distances from each to each, and the node of each
    /// processor.
    pub fn nodes(
        &mut self,
        memory: &[NodeMemory],
        distances: &[&[u8]],
        processors: &[u8],
    ) -> Result<(), OutOfSpace> {
        const MOST: usize = 256;
        let (mut body, mut bytes) = ([0; 4 + 3 * 64], [0; MOST + 64]);
        let string_at = NODES_RANGES + memory.len() * 24;
        let head = [distances.len(), processors.len(), memory.len(), string_at];
        let ranges = memory.iter().flat_map(|range| [range.node, range.start, range.size]);
        let words = body.get_mut(..4 + memory.len() * 3).ok_or(OutOfSpace)?;
        for (place, value) in words.iter_mut().zip(head.map(|word| word as u64).into_iter().chain(ranges)) {
            *place = value;
        }
        let all = distances.iter().flat_map(|row| row.iter()).chain(processors);
        let length = distances.iter().map(|row| row.len()).sum::<usize>() + processors.len();
        let string = bytes.get_mut(..length).ok_or(OutOfSpace)?;
        string.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        self.record(NODES, words, string)
    }

    /// Adds the screen.
    pub fn screen(&mut self, screen: &Screen) -> Result<(), OutOfSpace> {
        self.record(SCREEN, &screen.words(), &[])
    }

    /// Adds the place of the table of remapping units.
    pub fn remapping(&mut self, start: u64, size: u64) -> Result<(), OutOfSpace> {
        self.record(REMAPPING, &[start, size], &[])
    }

    /// Adds a module.
    pub fn module(&mut self, start: u64, size: u64, command_line: &[u8]) -> Result<(), OutOfSpace> {
        self.record(MODULE, &[start, size, 0x30], command_line)
    }

    /// Adds a loaded program.
    pub fn simple_exec(&mut self, program: SimpleExec, command_line: &[u8]) -> Result<(), OutOfSpace> {
        let SimpleExec { text, data, bss, initial_ip, flags, label } = program;
        let segment = |s: Segment| [s.physical, s.virtual_address, s.size];
        let ([a, b, c], [d, e, f], [g, h, i]) = (segment(text), segment(data), segment(bss));
        let body = [a, b, c, d, e, f, g, h, i, initial_ip, flags, label, 0x80];
        self.record(SIMPLE_EXEC, &body, command_line)
    }

    /// Adds the address of the Multiboot information.
    pub fn multiboot(&mut self, address: u64) -> Result<(), OutOfSpace> {
        self.record(MULTIBOOT, &[address], &[])
    }

    /// Completes the header and returns the total size in bytes.
    pub fn finish(self) -> usize {
        let header = [MAGIC, VERSION, self.end as u64, HEADER_SIZE as u64, self.count];
        for (bytes, value) in self.bytes.chunks_exact_mut(8).zip(header) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        self.end
    }

    /// Adds a record with `body` after its three header words; the command line follows the body,
    /// whose last word is its offset (cleared when it is empty).
    fn record(&mut self, kind: u64, body: &[u64], command_line: &[u8]) -> Result<(), OutOfSpace> {
        let body_end = 0x18 + body.len() * 8;
        let string_size = if command_line.is_empty() { 0 } else { command_line.len() + 1 };
        let size = (body_end + string_size).next_multiple_of(8);
        let start = self.end;
        let record = self.bytes.get_mut(start..start + size).ok_or(OutOfSpace)?;
        for (bytes, &value) in record.chunks_exact_mut(8).zip([kind, 1, 0].iter().chain(body)) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        if command_line.is_empty() && !matches!(kind, MULTIBOOT | SCREEN | REMAPPING) {
            record[body_end - 8..body_end].fill(0);
        }
        record[body_end..body_end + command_line.len()].copy_from_slice(command_line);
        if let Some(last) = self.last_record {
            let distance = (start - last) as u64;
            self.bytes[last + 0x10..last + 0x18].copy_from_slice(&distance.to_le_bytes());
        }
        self.last_record = Some(start);
        self.count += 1;
        self.end = start + size;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen {
        physical: 0xfd00_0000,
        pitch: 4096,
        width: 1024,
        height: 768,
        bits: 32,
        colours: 0x0800_0808_0810,
    };

    fn example(bytes: &mut [u8]) -> usize {
        let mut writer = Writer::new(bytes).unwrap();
        let text = Segment { physical: 0xf00000, virtual_address: 0xf00000, size: 0x5c00 };
        writer
            .simple_exec(SimpleExec { text, initial_ip: 0xf00000, flags: 2, ..Default::default() }, b"sigma0")
            .unwrap();
        writer.module(0x18_2000, 0x400, b"data one two").unwrap();
        writer.module(0x18_3000, 0x10, b"").unwrap();
        writer.multiboot(0x10_a000).unwrap();
        let memory = [NodeMemory { node: 1, start: 0, size: 0x1000 }];
        writer.nodes(&memory, &[&[10, 20], &[20, 10]], &[1]).unwrap();
        writer.screen(&SCREEN).unwrap();
        writer.remapping(0x1_2000, 0x90).unwrap();
        writer.finish()
    }

    /// Rules: 12.12, 12.13.
    #[test]
    fn reads_what_it_writes() {
        let mut bytes = [0xaa; 4096];
        let size = example(&mut bytes);
        assert_eq!(BootInfo::announced_size(&bytes), Some(size as u64));
        let info = BootInfo::new(&bytes).unwrap();
        let records: Vec<_> = info.records().collect();
        assert_eq!(records.len(), 7);
        assert_eq!(records[5], Record::Screen(SCREEN));
        assert_eq!(records[6], Record::Remapping { start: 0x1_2000, size: 0x90 });
        assert!(
            matches!(records[0], Record::SimpleExec { command_line: b"sigma0", program } if program.flags == 2)
        );
        assert_eq!(records[3], Record::Multiboot(0x10_a000));
        let modules: Vec<_> = info.modules().collect();
        assert_eq!(modules, [(0x18_2000, 0x400, &b"data one two"[..]), (0x18_3000, 0x10, &b""[..])]);
    }

    /// Node records are added also after what was finished before.
    ///
    /// Rules: EXT 10.1.
    #[test]
    fn nodes_are_told() {
        let mut bytes = [0xaa; 4096];
        example(&mut bytes);
        let before = BootInfo::new(&bytes).unwrap().records().count();
        let mut writer = Writer::resume(&mut bytes).unwrap();
        let memory =
            [(0, 0, 0x1000), (1, 0x1000, 0x3000)].map(|(node, start, size)| NodeMemory { node, start, size });
        writer.nodes(&memory, &[&[10, 21], &[31, 10]], &[0, 1, 1]).unwrap();
        writer.finish();
        let info = BootInfo::new(&bytes).unwrap();
        assert_eq!((info.records().count(), info.modules().count()), (before + 1, 2));
        let Some(Record::Nodes(nodes)) = info.records().last() else { panic!("no nodes") };
        assert_eq!(nodes.count(), 2);
        assert!(nodes.memory().eq(memory));
        assert_eq!([0, 2, 3].map(|processor| nodes.of_processor(processor)), [Some(0), Some(1), None]);
        assert_eq!(
            [nodes.distance(0, 1), nodes.distance(1, 0), nodes.distance(0, 2)],
            [Some(21), Some(31), None]
        );
        let mut empty = [0; 512];
        Writer::new(&mut empty).unwrap().finish();
        Writer::resume(&mut empty).unwrap().nodes(&[], &[&[10]], &[0]).unwrap();
        assert!(Writer::resume(&mut [0; 512]).is_none());
    }

    #[test]
    fn too_small_a_buffer_is_an_error() {
        let mut bytes = [0; HEADER_SIZE + 0x30];
        let mut writer = Writer::new(&mut bytes).unwrap();
        writer.module(1, 2, b"").unwrap();
        assert_eq!(writer.module(1, 2, b""), Err(OutOfSpace));
        assert_eq!(writer.finish(), HEADER_SIZE + 0x30);
        assert_eq!(BootInfo::new(&bytes).unwrap().modules().count(), 1);
        assert!(Writer::new(&mut [0; 8]).is_err());
    }

    /// No change of a single byte makes the reader panic or run for ever.
    #[test]
    fn broken_info_is_harmless() {
        let mut bytes = [0; 1024];
        let size = example(&mut bytes);
        for index in 0..size {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut broken = bytes;
                broken[index] = value;
                if let Some(info) = BootInfo::new(&broken) {
                    info.records().take(1000).for_each(|record| {
                        if let Record::Nodes(nodes) = record {
                            nodes.memory().for_each(drop);
                            let _ = (nodes.distance(0, 1), nodes.of_processor(0));
                        }
                    });
                }
            }
        }
        for size in 0..bytes.len() {
            let _ = BootInfo::new(&bytes[..size]).map(|info| info.records().count());
        }
    }
}
