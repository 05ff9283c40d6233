//! The fifteen system calls that a static "hello" makes, and its initial stack, by the interface of
//! x86-64 Linux.

use crate::process::{End, Process};
use x2::Rights;

const NOT_FOUND: u64 = -2i64 as u64;
const BAD_DESCRIPTOR: u64 = -9i64 as u64;
const FAULT: u64 = -14i64 as u64;
const INVALID: u64 = -22i64 as u64;
const NOT_A_TERMINAL: u64 = -25i64 as u64;
const NO_SUCH_CALL: u64 = -38i64 as u64;

mod number {
    pub(super) const WRITE: u64 = 1;
    pub(super) const MMAP: u64 = 9;
    pub(super) const MPROTECT: u64 = 10;
    pub(super) const MUNMAP: u64 = 11;
    pub(super) const BRK: u64 = 12;
    pub(super) const IOCTL: u64 = 16;
    pub(super) const WRITEV: u64 = 20;
    pub(super) const EXECVE: u64 = 59;
    pub(super) const READLINK: u64 = 89;
    pub(super) const ARCH_PRCTL: u64 = 158;
    pub(super) const SET_TID_ADDRESS: u64 = 218;
    pub(super) const EXIT_GROUP: u64 = 231;
    pub(super) const NEWFSTATAT: u64 = 262;
    pub(super) const READLINKAT: u64 = 267;
    pub(super) const SET_ROBUST_LIST: u64 = 273;
    pub(super) const PRLIMIT64: u64 = 302;
    pub(super) const GETRANDOM: u64 = 318;
    pub(super) const RSEQ: u64 = 334;
}

/// Carries out a system call. Errors of the call are results. Returns `Err` if the program has
/// ended.
pub(crate) fn system_call(process: &mut Process, call: u64, arguments: [u64; 6]) -> Result<u64, End> {
    let [a, b, c, d, ..] = arguments;
    let result = match call {
        number::EXIT_GROUP => return Err(End::Exited(a & 0xff)),
        number::WRITE if matches!(a, 1 | 2) => process.print(b, c).unwrap_or(FAULT),
        number::WRITEV if matches!(a, 1 | 2) => write_vectors(process, b, c).unwrap_or(FAULT),
        number::WRITE | number::WRITEV => BAD_DESCRIPTOR,
        number::BRK => process.set_heap_end(a),
        // A mapping of anonymous private memory at any address.
        number::MMAP if d & 0x32 == 0x22 => process.map_anonymous(b),
        number::MMAP => INVALID,
        number::MUNMAP => 0,
        number::MPROTECT => {
            process.protect(a, b, rights(c));
            0
        }
        number::ARCH_PRCTL if a == 0x1002 => {
            if process.set_fs_base(b) {
                0
            } else {
                INVALID
            }
        }
        number::ARCH_PRCTL => INVALID,
        number::SET_TID_ADDRESS => 1,
        number::SET_ROBUST_LIST => 0,
        number::PRLIMIT64 => limits(process, d),
        number::GETRANDOM => {
            let bytes = [0x5a; 64];
            let size = b.min(64);
            if process.write(a, &bytes[..size as usize]) { size } else { FAULT }
        }
        number::NEWFSTATAT if a == 1 => character_device(process, c),
        number::NEWFSTATAT | number::READLINK | number::READLINKAT | number::EXECVE => NOT_FOUND,
        number::IOCTL => NOT_A_TERMINAL,
        number::RSEQ => NO_SUCH_CALL,
        _ => NO_SUCH_CALL,
    };
    Ok(result)
}

fn rights(protection: u64) -> Rights {
    [(1, Rights::READ), (2, Rights::WRITE), (4, Rights::EXECUTE)]
        .into_iter()
        .filter(|(bit, _)| protection & bit != 0)
        .fold(Rights::NONE, |rights, (_, right)| rights.or(right))
}

fn write_vectors(process: &mut Process, vectors: u64, count: u64) -> Option<u64> {
    let mut written = 0;
    for index in 0..count.min(16) {
        let base = process.read_word(vectors + index * 16)?;
        let size = process.read_word(vectors + index * 16 + 8)?;
        written += process.print(base, size)?;
    }
    Some(written)
}

/// Answers that every limit is 8 MiB. The C library asks only for the limit of the stack.
fn limits(process: &mut Process, old: u64) -> u64 {
    let limit = (8u64 << 20).to_le_bytes();
    if old == 0 || process.write(old, &limit) && process.write(old + 8, &limit) { 0 } else { FAULT }
}

/// Describes standard output as a character device.
fn character_device(process: &mut Process, buffer: u64) -> u64 {
    let mut status = [0; 144];
    status[24..28].copy_from_slice(&0o020_620u32.to_le_bytes());
    status[56..64].copy_from_slice(&1024u64.to_le_bytes());
    if process.write(buffer, &status) { 0 } else { FAULT }
}

/// Builds the stack that a program finds at its start: strings, random bytes, auxiliary vector,
/// environment, arguments. Returns the stack pointer.
pub(crate) fn initial_stack(process: &mut Process, arguments: &[&str]) -> u64 {
    let mut at = process.stack_top();
    let mut push = |process: &mut Process, bytes: &[u8]| {
        at -= bytes.len() as u64 + 1;
        assert!(process.write(at, bytes), "the stack is there");
        at
    };
    let random = push(process, &[0x42; 16]);
    let home = push(process, b"HOME=/root");
    let mut addresses = [0; 8];
    for (address, argument) in addresses.iter_mut().zip(arguments) {
        *address = push(process, argument.as_bytes());
    }
    let [entry, headers, header_size, header_count] = process.executable();
    let auxiliary = [
        [3, headers],
        [4, header_size],
        [5, header_count],
        [6, 4096],
        [9, entry],
        [11, 0],
        [12, 0],
        [13, 0],
        [14, 0],
        [16, 0],
        [17, 100],
        [23, 0],
        [25, random],
        [0, 0],
    ];
    let words = 1 + arguments.len() + 1 + 2 + 2 * auxiliary.len();
    let stack = (at - words as u64 * 8) & !15;
    let strings = addresses[..arguments.len()].iter().copied();
    let vector = core::iter::once(arguments.len() as u64)
        .chain(strings)
        .chain([0, home, 0])
        .chain(auxiliary.into_iter().flatten());
    for (index, word) in vector.enumerate() {
        process.write(stack + index as u64 * 8, &word.to_le_bytes());
    }
    stack
}
