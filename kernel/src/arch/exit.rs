//! How a thread may be returned to user level: the decision, apart from the instructions, so that
//! it is tested on the host (the emulator raises SYSRET's fault at the wrong level).

/// The instruction that returns to user level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// SYSRET, which loads RIP from RCX and RFLAGS from R11.
    Sysret,
    /// IRETQ, which loads everything.
    Iret,
    /// Neither instruction can return: the address is not canonical, and the fault would come in
    /// kernel mode (K14).
    Impossible,
}

/// Whether the processor can execute at `address`, the access rights apart.
#[inline]
pub const fn is_canonical(address: u64) -> bool {
    (address << 16) as i64 >> 16 == address as i64
}

/// How to return to `rip`. After SYSCALL, RCX and R11 are destroyed in any case.
#[inline]
pub const fn path(entered_by_syscall: bool, rip: u64) -> Exit {
    match (entered_by_syscall, is_canonical(rip)) {
        (_, false) => Exit::Impossible,
        (true, true) => Exit::Sysret,
        (false, true) => Exit::Iret,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: ABI 19.13.
    #[test]
    fn non_canonical_addresses_are_never_returned_to() {
        for address in [1 << 47, 0x0000_8000_0000_0001, 0xffff_7fff_ffff_ffff, 1 << 63, 0x0001_0000_0000_0000]
        {
            assert_eq!(path(true, address), Exit::Impossible);
            assert_eq!(path(false, address), Exit::Impossible);
        }
    }

    /// Rules: ABI 19.13.
    #[test]
    fn sysret_only_after_syscall() {
        for address in [0, 0x1000, 0x7fff_ffff_ffff, 0xffff_ff00_0000_0002, u64::MAX] {
            assert_eq!(path(true, address), Exit::Sysret);
            assert_eq!(path(false, address), Exit::Iret);
        }
    }
}
