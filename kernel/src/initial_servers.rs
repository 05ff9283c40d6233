//! sigma0 and the root task: their images, loaded from the first two modules to their physical
//! addresses (ABI 1.3, 2).
use core::fmt;

use crate::arch;
use crate::boot::placement::FreeMemory;
use crate::elf::{ElfError, Executable};
use crate::memory::PhysRange;

/// An initial server as the kernel interface page describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitialServer {
    /// Initial instruction pointer.
    pub ip: u64,
    /// Initial stack pointer (0: the program sets its own).
    pub sp: u64,
    /// Lowest physical address of the image.
    pub low: u64,
    /// First address after it.
    pub high: u64,
}

/// Why a server cannot be loaded. Nothing has been copied then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// The file is no executable that can be loaded.
    Elf(ElfError),
    /// The range does not lie in free memory.
    Occupied(PhysRange),
    /// Two segments of the program both claim the range.
    Overlap(PhysRange),
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elf(error) => error.fmt(formatter),
            Self::Occupied(range) => write!(
                formatter,
                "it wants to be loaded at {:#x}..{:#x}, which is not free memory",
                range.start, range.end
            ),
            Self::Overlap(range) => {
                write!(formatter, "two of its segments both claim {:#x}..{:#x}", range.start, range.end)
            }
        }
    }
}

impl From<ElfError> for LoadError {
    fn from(error: ElfError) -> Self {
        Self::Elf(error)
    }
}

/// A program that can be loaded: checked, and its memory taken.
pub struct Placed<'a> {
    executable: Executable<'a>,
}

/// Checks a program file against the free memory and takes what it needs out of it.
pub fn place<'a>(file: &'a [u8], free: &mut FreeMemory) -> Result<Placed<'a>, LoadError> {
    let executable = Executable::parse(file)?;
    for (index, segment) in executable.segments().enumerate() {
        if !free.contains(segment.physical) {
            return Err(LoadError::Occupied(segment.physical));
        }
        if executable.segments().take(index).any(|other| other.physical.overlaps(segment.physical)) {
            return Err(LoadError::Overlap(segment.physical));
        }
    }
    executable.segments().for_each(|segment| free.remove(segment.physical));
    Ok(Placed { executable })
}

impl<'a> Placed<'a> {
    /// The checked executable.
    pub fn executable(&self) -> &Executable<'a> {
        &self.executable
    }

    /// Copies the program to its place.
    ///
    /// # Safety
    /// The free memory it was placed in is really free, direct-mapped, and does not hold the
    /// program's file.
    pub unsafe fn load(&self) -> InitialServer {
        for segment in self.executable.segments() {
            let target = arch::phys_to_virt(segment.physical.start);
            let size = segment.physical.size() as usize;
            // SAFETY: the caller's promise; `place` found the range inside free memory, and a
            // segment's content is not longer than its range.
            unsafe {
                target.copy_from_nonoverlapping(segment.content.as_ptr(), segment.content.len());
                target.add(segment.content.len()).write_bytes(0, size - segment.content.len());
            }
        }
        let span = self.executable.span();
        InitialServer { ip: self.executable.entry(), sp: 0, low: span.start.value(), high: span.end.value() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{BootInformation, MemoryKind, Protocol};
    use crate::elf::tests::file;
    use crate::memory::PhysAddr;

    fn free() -> FreeMemory {
        let mut boot = BootInformation::empty(Protocol::Multiboot1);
        boot.add_range(0x10_0000, 0x1000_0000, MemoryKind::Available);
        let mut free = FreeMemory::new(&boot, u64::MAX);
        free.remove(PhysRange::new(PhysAddr::new(0x80_0000), PhysAddr::new(0xe0_0000)));
        free
    }

    /// Rules: ABI 1.3.
    #[test]
    fn servers_do_not_overlap_the_kernel_or_each_other() {
        let mut free = free();
        let sigma0 = file(0xf0_0000, &[(0xf0_0000, b"text", 0x1800), (0xf0_1800, b"data", 0x100)]);
        assert!(place(&sigma0, &mut free).is_ok());
        assert!(matches!(place(&sigma0, &mut free), Err(LoadError::Occupied(_))));
        for address in [0, 0x80_0000, 0xdf_f000, 0x1_0000_0000] {
            let program = file(address, &[(address, b"text", 0x1001)]);
            assert!(matches!(place(&program, &mut free), Err(LoadError::Occupied(_))), "{address:#x}");
        }
    }

    #[test]
    fn a_program_does_not_overlap_itself() {
        let program = file(0x100_0000, &[(0x100_0000, b"text", 0x1001), (0x100_1000, b"data", 4)]);
        let error = place(&program, &mut free()).err();
        assert!(matches!(error, Some(LoadError::Overlap(_))), "{error:?}");
        assert_eq!(place(b"text", &mut free()).err(), Some(LoadError::Elf(ElfError::Magic)));
    }
}
