//! The shared object that programs find in their memory (AT_SYSINFO_EHDR, the vDSO of Linux): a
//! page that the server maps into every program, at an address where programs cannot map anything.
//! It has one function, getcpu(2), which reads the processor number that the kernel keeps in the
//! thread's UTCB, and so needs no system call. C libraries use it for sched_getcpu(3). Programs get
//! the page only if there are several processors.
//!
//! A program that sets its own GS base (no C library does) must use the system call getcpu instead.

use alloc::vec::Vec;
use core::arch::naked_asm;
use l4::x2::utcb;
use mach::Machine;
use mach::machine::{Frame, PAGE_SHIFT, PhysicalPage, PmapChange, Protection};
use mach_l4::L4Machine;
use unix::memory::Memory;
use unix::{Error, Result};

/// The address of the shared object: between the addresses that programs may use and the UTCBs,
/// after the page of bounce mode.
pub(crate) const ADDRESS: u64 = 0x7fff_8000_2000;

/// The offset from a thread's GS base at which the number of its processor is.
const NUMBER: usize = (utcb::PROCESSOR_NUMBER - utcb::SELF_POINTER) as usize * 8;
/// How many bytes of code are copied into the page.
const CODE_SIZE: usize = 32;
const NAMES: &[u8] = b"\0__vdso_getcpu\0linux-vdso.so.1\0LINUX_2.6\0";
const FUNCTION_NAME: u32 = 1;
const OBJECT_NAME: u32 = 15;
const VERSION_NAME: u32 = 31;

// The offsets of the parts of the shared object in its page.
const PROGRAM_HEADERS: usize = 64;
const DYNAMIC: usize = PROGRAM_HEADERS + 2 * 56;
const HASH: usize = DYNAMIC + 10 * 16;
const SYMBOLS: usize = HASH + 24;
const VERSIONS: usize = SYMBOLS + 2 * 24;
const DEFINITIONS: usize = VERSIONS + 4;
const STRINGS: usize = DEFINITIONS + 2 * 28;
const CODE: usize = (STRINGS + NAMES.len()).next_multiple_of(32);
const SIZE: usize = CODE + CODE_SIZE;

/// The page with the shared object, which is mapped into every program.
pub(crate) struct SharedObject(Frame);

impl SharedObject {
    /// Makes the page with the shared object. Fails with `ENOMEM` if memory is short.
    pub(crate) fn new(machine: &L4Machine) -> Result<SharedObject> {
        let frame = machine.allocate_frames(0).ok_or(Error::ENOMEM)?;
        machine.zero_frame(frame);
        machine.write_frame(frame, 0, &image());
        Ok(SharedObject(frame))
    }

    /// Maps the shared object into a program's memory. Fails with `ENOMEM` if memory is short.
    pub(crate) fn install(&self, machine: &L4Machine, memory: &Memory<L4Machine>) -> Result<()> {
        install(machine, memory, ADDRESS, self.0)
    }
}

/// Maps a page of the server's into a program's memory, to be read and executed, at an address
/// where programs cannot map anything. Fails with `ENOMEM` if memory is short.
pub(crate) fn install(
    machine: &L4Machine,
    memory: &Memory<L4Machine>,
    address: u64,
    frame: Frame,
) -> Result<()> {
    let enter = PmapChange::Enter {
        address,
        page: PhysicalPage::Frame(frame),
        shift: PAGE_SHIFT,
        protection: Protection::READ | Protection::EXECUTE,
    };
    let entered = memory.map().with_pmap(|pmap| machine.pmap_change(pmap, &[enter]));
    entered.ok_or(Error::ESRCH)?.map_err(|_| Error::ENOMEM)
}

/// The hash of a name in ELF files.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0, |hash: u32, &byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        (hash ^ (hash >> 28) << 4) & 0x0fff_ffff
    })
}

/// The ELF file: a header, two segments (the whole file; the dynamic section), a hash table with
/// one chain, one symbol, and the symbol's version, which Go's run-time library requires.
fn image() -> Vec<u8> {
    let mut image = Vec::with_capacity(SIZE);
    let half = |values: &[u16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let words = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let longs = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    // 64 bits, little-endian, ELF version 1; a shared object for x86-64.
    image.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    image.extend(half(&[3, 62]));
    image.extend(words(&[1]));
    image.extend(longs(&[0, PROGRAM_HEADERS as u64, 0]));
    image.extend(words(&[0]));
    image.extend(half(&[64, 56, 2, 64, 0, 0]));
    // PT_LOAD, readable and executable; PT_DYNAMIC, readable.
    let segments = [(1, 5, 0, SIZE as u64), (2, 4, DYNAMIC as u64, (HASH - DYNAMIC) as u64)];
    for (kind, flags, start, size) in segments {
        image.extend(words(&[kind, flags]));
        image.extend(longs(&[start, start, start, size, size, if kind == 1 { 0x1000 } else { 8 }]));
    }
    // DT_SONAME, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_VERSYM, DT_VERDEF,
    // DT_VERDEFNUM, DT_NULL.
    image.extend(longs(&[14, OBJECT_NAME.into(), 4, HASH as u64, 5, STRINGS as u64, 6, SYMBOLS as u64]));
    image.extend(longs(&[10, NAMES.len() as u64, 11, 24, 0x6fff_fff0, VERSIONS as u64]));
    image.extend(longs(&[0x6fff_fffc, DEFINITIONS as u64, 0x6fff_fffd, 2, 0, 0]));
    // The hash table: one bucket and two symbols. The bucket begins with symbol 1, whose chain ends
    // there.
    image.extend(words(&[1, 2, 1, 0, 0, 0]));
    image.extend(longs(&[0, 0, 0]));
    // The symbol: a global function. Its section number is any that does not mean "undefined"; the
    // file has no sections.
    image.extend(words(&[FUNCTION_NAME, 0x0001_0012]));
    image.extend(longs(&[CODE as u64, CODE_SIZE as u64]));
    // Versions: symbol 0 has none, symbol 1 has version 2. Version 1 is the object's own name.
    image.extend(half(&[0, 2]));
    for (flag, index, name, next) in [(1, 1, OBJECT_NAME, 28), (0, 2, VERSION_NAME, 0)] {
        let text = NAMES[name as usize..].split(|&byte| byte == 0).next().unwrap_or_default();
        image.extend(half(&[1, flag, index, 1]));
        image.extend(words(&[hash(text), 20, next, name, 0]));
    }
    image.extend(NAMES);
    image.resize(CODE, 0);
    image.extend(code());
    image
}

fn code() -> &'static [u8] {
    // SAFETY: the program's code is readable, and more code of this program follows the entry, so
    // that `CODE_SIZE` bytes can be read.
    #[allow(unsafe_code, reason = "the function's code as bytes")]
    unsafe {
        core::slice::from_raw_parts(getcpu as *const u8, CODE_SIZE)
    }
}

/// `int getcpu(unsigned *processor, unsigned *node)`. The code is copied into the page and never
/// called here.
#[unsafe(naked)]
#[allow(unsafe_code, reason = "code of programs")]
extern "C" fn getcpu() -> ! {
    naked_asm!(
        "mov eax, gs:[{number}]",
        "test rdi, rdi",
        "jz 2f",
        "mov [rdi], eax",
        "2:",
        "xor eax, eax",
        "test rsi, rsi",
        "jz 3f",
        "mov [rsi], eax",
        "3:",
        "ret",
        number = const NUMBER,
    )
}
