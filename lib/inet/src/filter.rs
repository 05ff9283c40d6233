//! Programs of the classic Berkeley packet filter. They look at a [`Subject`], a packet or
//! something else that has fields, and return a number. They have only forward jumps, so that each
//! ends.

use alloc::vec::Vec;

use crate::error::{Error, Result};

/// Bytes of an instruction (struct sock_filter).
pub const INSTRUCTION_SIZE: usize = 8;
/// The most instructions of a program.
pub const LENGTH_LIMIT: usize = 4096;
/// Words of a program's own memory.
const CELLS: u32 = 16;

/// What a program looks at.
pub trait Subject {
    /// How many bytes there are.
    fn length(&self) -> u32;

    /// The number in the `size` bytes (1, 2 or 4) at an offset; `None` if there are none, which
    /// ends the program with the value 0. A negative offset means something that is no part of the
    /// bytes.
    fn load(&self, at: i64, size: u32) -> Option<u32>;
}

/// What the programs of one kind may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The instructions for packets: loads of each size, at offsets that are computed as well, and
    /// remainders.
    Packets,
    /// Only loads of whole words at fixed offsets that are multiples of 4 and below this number.
    Words(u32),
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    operand: u32,
}
const _: () = assert!(size_of::<Instruction>() == INSTRUCTION_SIZE);

// The parts of an instruction's code: class, operation, and where the operand is.
const CLASS: u16 = 7;
const LOAD: u16 = 0;
const LOAD_INDEX: u16 = 1;
const STORE: u16 = 2;
const STORE_INDEX: u16 = 3;
const ARITHMETIC: u16 = 4;
const JUMP: u16 = 5;
const RETURN: u16 = 6;
const MISCELLANEOUS: u16 = 7;
const INDEX: u16 = 8;

const IMMEDIATE: u16 = 0;
const ABSOLUTE: u16 = 0x20;
const INDIRECT: u16 = 0x40;
const CELL: u16 = 0x60;
const SIZE: u16 = 0x80;
/// The header length of IPv4: four times the low half of a byte.
const HEADER: u16 = 0xa0;
const HALF: u16 = 0x08;
const BYTE: u16 = 0x10;

/// A program that has been checked: it uses only instructions that exist, it ends, and it reads no
/// cell of its memory that it has not written.
#[derive(Clone, Debug)]
pub struct Program(Vec<Instruction>);

impl Program {
    /// Reads and checks a program.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`.
    pub fn new(bytes: &[u8], rules: Rules) -> Result<Program> {
        let instructions = bytes.chunks_exact(INSTRUCTION_SIZE).map(|bytes| Instruction {
            code: u16::from_le_bytes([bytes[0], bytes[1]]),
            if_true: bytes[2],
            if_false: bytes[3],
            operand: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        });
        let program = Program(instructions.collect());
        program.check(rules)?;
        Ok(program)
    }

    /// Appends the program's bytes, of which [`Program::new`] makes it again.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        for &Instruction { code, if_true, if_false, operand } in &self.0 {
            to.extend(code.to_le_bytes());
            to.extend([if_true, if_false]);
            to.extend(operand.to_le_bytes());
        }
    }

    /// How many instructions the program has.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Bytes of memory that the program has.
    pub(crate) fn size(&self) -> usize {
        self.0.len() * INSTRUCTION_SIZE
    }

    fn check(&self, rules: Rules) -> Result<()> {
        let program = &self.0;
        if program.is_empty() || program.len() > LENGTH_LIMIT {
            return Err(Error::InvalidArgument);
        }
        // Which cells are written on all ways to each instruction.
        let mut written = alloc::vec![u16::MAX; program.len()];
        let mut now = 0_u16;
        for (at, instruction) in program.iter().enumerate() {
            now &= written[at];
            let Instruction { code, if_true, if_false, operand } = *instruction;
            let mut lead_to = |distance: u64, cells: u16| {
                let target =
                    (at as u64 + 1).checked_add(distance).filter(|target| *target < program.len() as u64);
                let target = target.ok_or(Error::InvalidArgument)? as usize;
                written[target] &= cells;
                Ok::<_, Error>(())
            };
            match (code & CLASS, code & !CLASS) {
                (LOAD | LOAD_INDEX, IMMEDIATE | SIZE) => {}
                (LOAD | LOAD_INDEX, CELL) if operand < CELLS && now & 1 << operand != 0 => {}
                (class @ (LOAD | LOAD_INDEX), from) if may_load(class, from, operand, rules) => {}
                (STORE | STORE_INDEX, 0) if operand < CELLS => now |= 1 << operand,
                // Division by the constant 0, and its remainder.
                (ARITHMETIC, 0x30 | 0x90) if operand == 0 => return Err(Error::InvalidArgument),
                // Shifts by a constant.
                (ARITHMETIC, 0x60 | 0x70) if operand > 31 => return Err(Error::InvalidArgument),
                // Addition to right shift, exclusive or, and negation.
                (ARITHMETIC, operation)
                    if matches!(operation & !INDEX, 0x00..=0x70 | 0xa0) || operation == 0x80 => {}
                (ARITHMETIC, 0x90 | 0x98) if rules == Rules::Packets => {}
                (JUMP, 0) => {
                    lead_to(operand.into(), now)?;
                    now = u16::MAX;
                }
                (JUMP, operation) if matches!(operation & !INDEX, 0x10 | 0x20 | 0x30 | 0x40) => {
                    lead_to(if_true.into(), now)?;
                    lead_to(if_false.into(), now)?;
                    now = u16::MAX;
                }
                (RETURN, 0 | 0x10) => now = u16::MAX,
                (MISCELLANEOUS, 0 | 0x80) => {}
                _ => return Err(Error::InvalidArgument),
            }
            if at + 1 == program.len() && code & CLASS != RETURN {
                return Err(Error::InvalidArgument);
            }
        }
        Ok(())
    }

    /// Runs the program; returns its value.
    pub fn run(&self, subject: &impl Subject) -> u32 {
        let (mut accumulator, mut index, mut cells) = (0_u32, 0_u32, [0_u32; CELLS as usize]);
        let mut at = 0;
        while let Some(instruction) = self.0.get(at) {
            let Instruction { code, if_true, if_false, operand } = *instruction;
            let cell = operand as usize % cells.len();
            let value = if code & INDEX != 0 { index } else { operand };
            at += 1;
            match (code & CLASS, code & !CLASS) {
                (class @ (LOAD | LOAD_INDEX), from) => {
                    let loaded = match from {
                        IMMEDIATE => Some(operand),
                        CELL => Some(cells[cell]),
                        SIZE => Some(subject.length()),
                        _ => load(subject, class, from, operand, index),
                    };
                    let Some(loaded) = loaded else { return 0 };
                    *(if class == LOAD { &mut accumulator } else { &mut index }) = loaded;
                }
                (STORE, _) => cells[cell] = accumulator,
                (STORE_INDEX, _) => cells[cell] = index,
                (ARITHMETIC, operation) => match calculate(operation & !INDEX, accumulator, value) {
                    Some(result) => accumulator = result,
                    // Division by 0 ends the program with the value 0.
                    None => return 0,
                },
                (JUMP, 0) => at += operand as usize,
                (JUMP, operation) => {
                    let holds = match operation & !INDEX {
                        0x10 => accumulator == value,
                        0x20 => accumulator > value,
                        0x30 => accumulator >= value,
                        _ => accumulator & value != 0,
                    };
                    at += usize::from(if holds { if_true } else { if_false });
                }
                (RETURN, 0x10) => return accumulator,
                (RETURN, _) => return operand,
                (_, 0x80) => accumulator = index,
                _ => index = accumulator,
            }
        }
        // A checked program does not come here.
        0
    }
}

/// Whether programs by these rules may load from the subject so.
fn may_load(class: u16, from: u16, operand: u32, rules: Rules) -> bool {
    match rules {
        Rules::Words(end) => (class, from) == (LOAD, ABSOLUTE) && operand.is_multiple_of(4) && operand < end,
        Rules::Packets if class == LOAD_INDEX => from == HEADER | BYTE,
        Rules::Packets => {
            matches!(from & !(HALF | BYTE), ABSOLUTE | INDIRECT) && from & (HALF | BYTE) != HALF | BYTE
        }
    }
}

/// Loads from the subject; `None` if there is nothing at that offset.
fn load(subject: &impl Subject, class: u16, from: u16, operand: u32, index: u32) -> Option<u32> {
    if class == LOAD_INDEX {
        return Some((subject.load(operand.into(), 1)? & 15) * 4);
    }
    let at = match from & !(HALF | BYTE) {
        INDIRECT => i64::from(operand as i32) + i64::from(index as i32),
        _ => i64::from(operand as i32),
    };
    let size = match from & (HALF | BYTE) {
        HALF => 2,
        BYTE => 1,
        _ => 4,
    };
    subject.load(at, size)
}

/// The result of an arithmetic operation; `None` for a division by 0.
fn calculate(operation: u16, left: u32, right: u32) -> Option<u32> {
    Some(match operation {
        0x00 => left.wrapping_add(right),
        0x10 => left.wrapping_sub(right),
        0x20 => left.wrapping_mul(right),
        0x30 => left.checked_div(right)?,
        0x40 => left | right,
        0x50 => left & right,
        0x60 => left.wrapping_shl(right),
        0x70 => left.wrapping_shr(right),
        0x90 => left.checked_rem(right)?,
        0xa0 => left ^ right,
        _ => left.wrapping_neg(),
    })
}

/// A packet, as filters of sockets see it.
pub(crate) struct Seen<'a> {
    /// The whole packet in two pieces, with its link's header if it has one.
    pub(crate) pieces: (&'a [u8], &'a [u8]),
    /// Where the part begins that the socket receives, from the start of the pieces.
    pub(crate) start: usize,
    /// Where the header of the network's protocol begins, if it is there: a link's header comes
    /// before it.
    pub(crate) network: Option<usize>,
    /// The network's protocol, by the type of a frame that has it.
    pub(crate) protocol: u16,
    /// How the frame was addressed, by Linux' number (PACKET_HOST and so on).
    pub(crate) class: u8,
    /// The interface.
    pub(crate) interface: u32,
    /// The type of the interface's hardware (ARPHRD_ETHER, ARPHRD_LOOPBACK).
    pub(crate) hardware: u16,
}

impl Seen<'_> {
    /// What is known of a packet in addition to its bytes (SKF_AD_PROTOCOL and so on).
    fn ancillary(&self, what: i64) -> Option<u32> {
        Some(match what {
            0 => self.protocol.into(),
            4 => self.class.into(),
            8 => self.interface,
            28 => self.hardware.into(),
            // The mark, the queue, the hash, the processor, the tag of a virtual network and
            // whether there is one, and its protocol: packets here have none of these.
            20 | 24 | 32 | 36 | 44 | 48 | 60 => 0,
            _ => return None,
        })
    }
}

impl Subject for Seen<'_> {
    fn length(&self) -> u32 {
        (self.pieces.0.len() + self.pieces.1.len() - self.start) as u32
    }

    fn load(&self, at: i64, size: u32) -> Option<u32> {
        const ANCILLARY: i64 = -0x1000;
        const NETWORK: i64 = -0x10_0000;
        const LINK: i64 = -0x20_0000;
        let from = match at {
            0.. => at + self.start as i64,
            ANCILLARY.. => return self.ancillary(at - ANCILLARY),
            NETWORK.. => at - NETWORK + self.network? as i64,
            LINK.. if self.network? > 0 => at - LINK,
            _ => return None,
        };
        let from = usize::try_from(from).ok()?;
        let (head, body) = self.pieces;
        (from..from.checked_add(size as usize)?).try_fold(0, |value, at| {
            let byte = head.get(at).or_else(|| body.get(at.checked_sub(head.len())?))?;
            Some(value << 8 | u32::from(*byte))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction.
    fn i(code: u16, if_true: u8, if_false: u8, operand: u32) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&code.to_le_bytes());
        (bytes[2], bytes[3]) = (if_true, if_false);
        bytes[4..].copy_from_slice(&operand.to_le_bytes());
        bytes
    }

    fn program(instructions: &[[u8; 8]]) -> Result<Program> {
        Program::new(&instructions.concat(), Rules::Packets)
    }

    /// A frame with a datagram of UDP from port 1000 to port 53, whose IPv4 header has options.
    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 14 + 24 + 8];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x46;
        frame[14 + 9] = 17;
        frame[38..42].copy_from_slice(&[0x03, 0xe8, 0, 53]);
        frame
    }

    fn seen(pieces: (&[u8], &[u8]), start: usize) -> u32 {
        // "udp port 53" as tcpdump compiles it for Ethernet, without IPv6.
        let dns = program(&[
            i(0x28, 0, 0, 12),
            i(0x15, 0, 10, 0x0800),
            i(0x30, 0, 0, 23),
            i(0x15, 0, 8, 17),
            i(0x28, 0, 0, 20),
            i(0x45, 6, 0, 0x1fff),
            i(0xb1, 0, 0, 14),
            i(0x48, 0, 0, 14),
            i(0x15, 2, 0, 53),
            i(0x48, 0, 0, 16),
            i(0x15, 0, 1, 53),
            i(0x06, 0, 0, 262_144),
            i(0x06, 0, 0, 0),
        ]);
        let seen =
            Seen { pieces, start, network: Some(14), protocol: 0x800, class: 4, interface: 2, hardware: 1 };
        dns.unwrap().run(&seen)
    }

    #[test]
    fn a_filter_of_tcpdump_finds_its_packets_wherever_the_pieces_are_cut() {
        let frame = frame();
        for cut in 0..=frame.len() {
            assert_eq!(seen(frame.split_at(cut), 0), 262_144, "cut at {cut}");
        }
        let mut other = frame.clone();
        other[41] = 54;
        assert_eq!(seen((&other, &[]), 0), 0);
        assert_eq!(seen((&frame[..30], &[]), 0), 0, "the packet ends before the port");
        assert_eq!(seen((&[], &[]), 0), 0);
    }

    #[test]
    fn negative_offsets_lead_to_what_is_known_of_the_packet_and_to_its_headers() {
        let frame = frame();
        let at = |code: u16, offset: i32| {
            let program = program(&[i(code, 0, 0, offset as u32), i(0x16, 0, 0, 0)]).unwrap();
            let pieces = frame.split_at(14);
            let (start, network, interface, hardware) = (14, Some(14), 2, 772);
            program.run(&Seen { pieces, start, network, protocol: 0x800, class: 4, interface, hardware })
        };
        assert_eq!((at(0x20, -0x1000), at(0x20, -0x1000 + 4)), (0x800, 4));
        assert_eq!((at(0x20, -0x1000 + 8), at(0x20, -0x1000 + 28)), (2, 772));
        assert_eq!(at(0x20, -0x1000 + 48), 0, "no virtual network");
        assert_eq!(at(0x30, 0), 0x46, "the part that the socket gets begins with the IP header");
        assert_eq!((at(0x30, -0x10_0000 + 9), at(0x28, -0x20_0000 + 12)), (17, 0x800));
        assert_eq!((at(0x20, -1), at(0x20, i32::MIN), at(0x20, i32::MAX)), (0, 0, 0));
        assert_eq!(at(0x80, 0), 32, "the length");
    }

    #[test]
    fn programs_for_packets_may_compute_offsets_and_those_for_words_may_not() {
        let end = i(0x06, 0, 0, 1);
        for code in [0x28, 0x30, 0x40, 0x48, 0x50, 0xb1, 0x9c] {
            let bytes = [i(code, 0, 0, 1), end].concat();
            assert!(Program::new(&bytes, Rules::Packets).is_ok(), "{code:#x}");
            assert!(Program::new(&bytes, Rules::Words(64)).is_err(), "{code:#x}");
        }
        for code in [0x38, 0x58, 0xa1, 0xb0, 0x21, 0x94] {
            assert!(program(&[i(code, 0, 0, 0), end]).is_err(), "{code:#x}");
        }
        // A computed offset does not wrap around.
        let wraps = [i(0x01, 0, 0, u32::MAX), i(0x50, 0, 0, 0x8000_0001), end].concat();
        let empty = Seen {
            pieces: (&[9; 8], &[]),
            start: 0,
            network: None,
            protocol: 0,
            class: 0,
            interface: 1,
            hardware: 1,
        };
        assert_eq!(Program::new(&wraps, Rules::Packets).unwrap().run(&empty), 0);
        let remainder = [i(0x00, 0, 0, 17), i(0x01, 0, 0, 5), i(0x9c, 0, 0, 0), i(0x16, 0, 0, 0)].concat();
        assert_eq!(Program::new(&remainder, Rules::Packets).unwrap().run(&empty), 2);
    }
}
