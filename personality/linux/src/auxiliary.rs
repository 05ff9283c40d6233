//! The auxiliary vector (getauxval(3)).

use crate::linux::{Linux, Processor};
use alloc::vec::Vec;
use mach::Machine;
use unix::exec::{Elf, ImageFormat};
use unix::front_end::Programs;
use unix::thread::ProgramInformation;

const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PAGESZ: u64 = 6;
const AT_BASE: u64 = 7;
const AT_FLAGS: u64 = 8;
const AT_ENTRY: u64 = 9;
const AT_UID: u64 = 11;
const AT_EUID: u64 = 12;
const AT_GID: u64 = 13;
const AT_EGID: u64 = 14;
const AT_PLATFORM: u64 = 15;
const AT_HWCAP: u64 = 16;
const AT_CLKTCK: u64 = 17;
const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;
const AT_HWCAP2: u64 = 26;
const AT_EXECFN: u64 = 31;
const AT_SYSINFO_EHDR: u64 = 33;
const AT_MINSIGSTKSZ: u64 = 51;

/// The name of the processor family (AT_PLATFORM).
const PLATFORM: &[u8] = b"x86_64";

impl<M: Machine> Programs for Linux<M> {
    fn format(&self) -> &dyn ImageFormat {
        &Elf
    }

    fn platform(&self) -> &[u8] {
        PLATFORM
    }

    fn auxiliary(&self, program: &ProgramInformation<'_>) -> Vec<(u64, u64)> {
        vector(&self.processor, program)
    }
}

/// The auxiliary vector for a program, without its terminating pair.
fn vector(processor: &Processor, program: &ProgramInformation<'_>) -> Vec<(u64, u64)> {
    let (loaded, credentials) = (program.loaded, program.credentials);
    let frame = crate::layout::signal::FRAME_SIZE + processor.extended_size + 4 + 64 + 128;
    let mut vector = alloc::vec![
        (AT_MINSIGSTKSZ, (frame as u64).next_multiple_of(16)),
        (AT_HWCAP, processor.features),
        (AT_PAGESZ, 4096),
        (AT_CLKTCK, 100),
        (AT_PHDR, loaded.headers),
        (AT_PHENT, unix::exec::elf::PROGRAM_HEADER_SIZE as u64),
        (AT_PHNUM, loaded.header_count as u64),
        (AT_BASE, loaded.interpreter_base),
        (AT_FLAGS, 0),
        (AT_ENTRY, loaded.entry),
        (AT_UID, credentials.user.real.into()),
        (AT_EUID, credentials.user.effective.into()),
        (AT_GID, credentials.group.real.into()),
        (AT_EGID, credentials.group.effective.into()),
        (AT_SECURE, program.secure.into()),
        (AT_RANDOM, program.pointers.random),
        (AT_HWCAP2, processor.more_features),
        (AT_EXECFN, program.pointers.path),
        (AT_PLATFORM, program.pointers.platform),
    ];
    vector.extend(processor.shared_object.map(|address| (AT_SYSINFO_EHDR, address)));
    vector
}
