//! The instructions that access I/O ports, and which ports they access.
use x2::Fpage;

/// Longest instruction in bytes.
pub const MAX_LENGTH: usize = 15;

/// The I/O ports that one instruction accesses. All of them exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortAccess {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

impl PortAccess {
    /// The ports that the instruction at the beginning of `code` accesses, with `dx` in DX: `None`
    /// if it accesses none, is not all there, or goes beyond the last port, which no permission can
    /// allow.
    pub fn of(code: &[u8], dx: u16) -> Option<Self> {
        let mut narrow = false;
        let mut wide = false;
        let mut bytes = code.iter().take(MAX_LENGTH).copied();
        let opcode = loop {
            match bytes.next()? {
                0x66 => (narrow, wide) = (true, false),
                // Prefixes of address size, repetition and segments.
                0x67 | 0xf2 | 0xf3 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => wide = false,
                // REX counts only where it is the last prefix; its operand size wins, and means 32
                // bits here.
                rex @ 0x40..=0x4f => wide = rex & 8 != 0,
                opcode => break opcode,
            }
        };
        let first = match opcode {
            // IN and OUT with the port in the instruction.
            0xe4..=0xe7 => u16::from(bytes.next()?),
            // INS, OUTS, IN and OUT with the port in DX.
            0x6c..=0x6f | 0xec..=0xef => dx,
            _ => return None,
        };
        let width = match (opcode & 1, narrow && !wide) {
            (0, _) => 1,
            (_, true) => 2,
            (_, false) => 4,
        };
        Some(Self { first, last: first.checked_add(width - 1)? })
    }

    /// The smallest fpage that has all the ports: for an aligned access, as many as it is wide.
    pub fn fpage(self) -> Fpage {
        let size_log2 = u16::BITS - (self.first ^ self.last).leading_zeros();
        Fpage::io(self.first, size_log2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(code: &[u8], dx: u16) -> Option<(u16, u16)> {
        PortAccess::of(code, dx).map(|access| (access.first, access.last))
    }

    /// Rules: 12.8.
    #[test]
    fn every_form() {
        for opcode in [0xe4, 0xe6] {
            assert_eq!(ports(&[opcode, 0x61], 0x3f8), Some((0x61, 0x61)));
            assert_eq!(ports(&[opcode + 1, 0x61], 0x3f8), Some((0x61, 0x64)));
        }
        for opcode in [0x6c, 0x6e, 0xec, 0xee] {
            assert_eq!(ports(&[opcode], 0x3f8), Some((0x3f8, 0x3f8)));
            assert_eq!(ports(&[opcode + 1], 0x3f8), Some((0x3f8, 0x3fb)));
            assert_eq!(ports(&[0x66, opcode + 1], 0x3f8), Some((0x3f8, 0x3f9)));
            assert_eq!(ports(&[0xf3, 0x66, opcode + 1], 0x3f8), Some((0x3f8, 0x3f9)));
            assert_eq!(ports(&[0x67, 0xf2, opcode], 0x3f8), Some((0x3f8, 0x3f8)));
            assert_eq!(ports(&[0x66, 0x48, opcode + 1], 0x3f8), Some((0x3f8, 0x3fb)), "REX.W wins");
            assert_eq!(ports(&[0x48, 0x66, opcode + 1], 0x3f8), Some((0x3f8, 0x3f9)), "REX not last");
            assert_eq!(ports(&[0x66, 0x41, opcode + 1], 0x3f8), Some((0x3f8, 0x3f9)), "REX without W");
        }
    }

    #[test]
    fn what_is_no_access() {
        for code in [&[][..], &[0xf4], &[0xe4], &[0x66], &[0x0f, 0x6c], &[0xc5, 0xec], &[0x66; 20], &[0xfa]] {
            assert_eq!(ports(code, 0), None, "{code:x?}");
        }
        let mut too_long = [0x2e; 16];
        too_long[15] = 0xec;
        assert_eq!(ports(&too_long, 0), None);
        assert_eq!(ports(&too_long[1..], 0), Some((0, 0)));
    }

    /// Rules: 12.8.
    #[test]
    fn beyond_the_last_port() {
        assert_eq!(ports(&[0xec], 0xffff), Some((0xffff, 0xffff)));
        assert_eq!(ports(&[0x66, 0xed], 0xffff), None);
        assert_eq!(ports(&[0xed], 0xfffd), None);
        assert_eq!(ports(&[0xed], 0xfffc), Some((0xfffc, 0xffff)));
    }

    /// Rules: 12.8, ABI 9.2.
    #[test]
    fn fpages_have_all_ports() {
        let fpage = |first, last| PortAccess { first, last }.fpage();
        assert_eq!(fpage(0x3f8, 0x3f8), Fpage::io(0x3f8, 0));
        assert_eq!(fpage(0x3f8, 0x3f9), Fpage::io(0x3f8, 1));
        assert_eq!(fpage(0x3f9, 0x3fa), Fpage::io(0x3f8, 2));
        assert_eq!(fpage(0x3fe, 0x401), Fpage::io(0, 11));
        assert_eq!(fpage(0x7fff, 0x8000), Fpage::COMPLETE_IO);
        assert_eq!(fpage(0xfffc, 0xffff), Fpage::io(0xfffc, 2));
    }
}
