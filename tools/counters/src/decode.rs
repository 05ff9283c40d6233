//! Decodes a guest instruction, as far as the lab counts its kind.

/// The kind of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An instruction that is only counted as one.
    Plain,
    /// A mark: its kind (1 begin, 2 end, 3 pause, 4 resume) and the region's number.
    Mark(u8, u8),
    /// An instruction of one of the [`Special`] kinds.
    Special(Special),
}

/// Kinds of instructions whose cost an instruction count hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Special {
    /// `mov` to CR3: a new address space.
    Cr3Load,
    /// `mov` to another control register, or `clts`.
    ControlRegister,
    /// `wrmsr`.
    Wrmsr,
    /// `rdmsr`.
    Rdmsr,
    /// `swapgs`.
    Swapgs,
    /// `wrfsbase`.
    FsBase,
    /// `wrgsbase`.
    GsBase,
    /// `syscall`.
    Syscall,
    /// `sysret`.
    Sysret,
    /// `iret`.
    Iret,
    /// `invlpg`, `invpcid`.
    Invalidate,
    /// `cpuid`, `lgdt`, `lidt`, `ltr`, `lldt`, `wbinvd`, a segment register load, `mov` to a debug
    /// register.
    OtherSerialising,
    /// `mfence`, `lfence`, `sfence`.
    Fence,
    /// An instruction with a `lock` prefix, or `xchg` with memory.
    Locked,
    /// `fxsave` and the forms of `xsave`.
    SaveState,
    /// `fxrstor`, `xrstor`.
    RestoreState,
    /// `in`, `out`, `ins`, `outs`.
    PortIo,
    /// `rdtsc`, `rdtscp`.
    Rdtsc,
    /// `hlt`, `mwait`.
    Halt,
    /// `pause`.
    Pause,
    /// `rep movs`, `rep stos`.
    Bulk,
}

impl Special {
    /// All special kinds, in the order of their numbers.
    pub const ALL: [Special; 21] = [
        Special::Cr3Load,
        Special::ControlRegister,
        Special::Wrmsr,
        Special::Rdmsr,
        Special::Swapgs,
        Special::FsBase,
        Special::GsBase,
        Special::Syscall,
        Special::Sysret,
        Special::Iret,
        Special::Invalidate,
        Special::OtherSerialising,
        Special::Fence,
        Special::Locked,
        Special::SaveState,
        Special::RestoreState,
        Special::PortIo,
        Special::Rdtsc,
        Special::Halt,
        Special::Pause,
        Special::Bulk,
    ];

    /// The name of the kind in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Special::Cr3Load => "cr3_load",
            Special::ControlRegister => "control_register",
            Special::Wrmsr => "wrmsr",
            Special::Rdmsr => "rdmsr",
            Special::Swapgs => "swapgs",
            Special::FsBase => "fs_base",
            Special::GsBase => "gs_base",
            Special::Syscall => "syscall",
            Special::Sysret => "sysret",
            Special::Iret => "iret",
            Special::Invalidate => "invalidate",
            Special::OtherSerialising => "other_serialising",
            Special::Fence => "fence",
            Special::Locked => "locked",
            Special::SaveState => "save_state",
            Special::RestoreState => "restore_state",
            Special::PortIo => "port_io",
            Special::Rdtsc => "rdtsc",
            Special::Halt => "halt",
            Special::Pause => "pause",
            Special::Bulk => "bulk",
        }
    }
}

/// The upper half of the displacement of an instruction that is a mark.
const MARK: u32 = 0x4d4c;

#[derive(Clone, Copy, Default)]
struct Prefixes {
    lock: bool,
    rep: bool,
}

/// The kind of the 64-bit-mode instruction with which `bytes` begin.
pub fn kind(bytes: &[u8]) -> Kind {
    let mut prefixes = Prefixes::default();
    let mut rest = bytes;
    while let [prefix, more @ ..] = rest {
        match prefix {
            0xf0 => prefixes.lock = true,
            0xf2 | 0xf3 => prefixes.rep = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0x40..=0x4f => {}
            _ => break,
        }
        rest = more;
    }
    if let Some(mark) = mark(rest) {
        return mark;
    }
    match special(prefixes, rest) {
        Some(special) => Kind::Special(special),
        None if prefixes.lock => Kind::Special(Special::Locked),
        None => Kind::Plain,
    }
}

fn mark(bytes: &[u8]) -> Option<Kind> {
    let [0x0f, 0x1f, 0x80, a, b, c, d, ..] = *bytes else { return None };
    let displacement = u32::from_le_bytes([a, b, c, d]);
    (displacement >> 16 == MARK).then_some(Kind::Mark((displacement >> 8) as u8, displacement as u8))
}

fn special(prefixes: Prefixes, bytes: &[u8]) -> Option<Special> {
    let modrm = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let (register, memory) = (|at: usize| modrm(at) >> 3 & 7, |at: usize| modrm(at) >> 6 != 3);
    Some(match bytes.first()? {
        0x86 | 0x87 if memory(1) => Special::Locked,
        0x8e => Special::OtherSerialising,
        0x90 if prefixes.rep => Special::Pause,
        0xa4 | 0xa5 | 0xaa | 0xab if prefixes.rep => Special::Bulk,
        0xcf => Special::Iret,
        0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f => Special::PortIo,
        0xf4 => Special::Halt,
        0x0f => match bytes.get(1)? {
            0x00 if matches!(register(2), 2 | 3) => Special::OtherSerialising,
            0x01 => match modrm(2) {
                0xf8 => Special::Swapgs,
                0xf9 => Special::Rdtsc,
                0xc9 => Special::Halt,
                0xd1 => Special::ControlRegister,
                _ if memory(2) && register(2) == 7 => Special::Invalidate,
                _ if memory(2) && matches!(register(2), 2 | 3) => Special::OtherSerialising,
                _ if register(2) == 6 => Special::ControlRegister,
                _ => return None,
            },
            0x05 => Special::Syscall,
            0x06 => Special::ControlRegister,
            0x07 => Special::Sysret,
            0x09 => Special::OtherSerialising,
            0x22 if register(2) == 3 => Special::Cr3Load,
            0x22 => Special::ControlRegister,
            0x23 => Special::OtherSerialising,
            0x30 => Special::Wrmsr,
            0x31 => Special::Rdtsc,
            0x32 => Special::Rdmsr,
            0x38 if bytes.get(2) == Some(&0x82) => Special::Invalidate,
            0xa2 => Special::OtherSerialising,
            0xae if memory(2) => match register(2) {
                0 | 4 | 6 => Special::SaveState,
                1 | 5 => Special::RestoreState,
                _ => return None,
            },
            0xae if prefixes.rep => match register(2) {
                2 => Special::FsBase,
                3 => Special::GsBase,
                _ => return None,
            },
            0xae if register(2) >= 5 => Special::Fence,
            0xc7 if memory(2) => match register(2) {
                3 => Special::RestoreState,
                4 | 5 => Special::SaveState,
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn special_of(bytes: &[u8]) -> Special {
        match kind(bytes) {
            Kind::Special(special) => special,
            other => panic!("{bytes:x?} is {other:?}"),
        }
    }

    #[test]
    fn each_counted_instruction_is_recognised() {
        for (bytes, special) in [
            (&[0x0f, 0x22, 0xd8][..], Special::Cr3Load),
            (&[0x41, 0x0f, 0x22, 0xdf], Special::Cr3Load),
            (&[0x0f, 0x22, 0xc0], Special::ControlRegister),
            (&[0x0f, 0x06], Special::ControlRegister),
            (&[0x0f, 0x30], Special::Wrmsr),
            (&[0x0f, 0x32], Special::Rdmsr),
            (&[0x0f, 0x01, 0xf8], Special::Swapgs),
            (&[0xf3, 0x48, 0x0f, 0xae, 0xd0], Special::FsBase),
            (&[0xf3, 0x48, 0x0f, 0xae, 0xd8], Special::GsBase),
            (&[0x0f, 0x05], Special::Syscall),
            (&[0x48, 0x0f, 0x07], Special::Sysret),
            (&[0x48, 0xcf], Special::Iret),
            (&[0x0f, 0x01, 0x38], Special::Invalidate),
            (&[0x66, 0x0f, 0x38, 0x82, 0x0a], Special::Invalidate),
            (&[0x0f, 0xa2], Special::OtherSerialising),
            (&[0x0f, 0x01, 0x10], Special::OtherSerialising),
            (&[0x0f, 0x00, 0xd8], Special::OtherSerialising),
            (&[0x8e, 0xd8], Special::OtherSerialising),
            (&[0x0f, 0xae, 0xf0], Special::Fence),
            (&[0x0f, 0xae, 0xe8], Special::Fence),
            (&[0xf0, 0x48, 0x0f, 0xb1, 0x0f], Special::Locked),
            (&[0xf0, 0xff, 0x00], Special::Locked),
            (&[0x48, 0x87, 0x07], Special::Locked),
            (&[0x0f, 0xae, 0x27], Special::SaveState),
            (&[0x48, 0x0f, 0xae, 0x2f], Special::RestoreState),
            (&[0x0f, 0xc7, 0x27], Special::SaveState),
            (&[0xec], Special::PortIo),
            (&[0xe6, 0x80], Special::PortIo),
            (&[0x0f, 0x31], Special::Rdtsc),
            (&[0x0f, 0x01, 0xf9], Special::Rdtsc),
            (&[0xf4], Special::Halt),
            (&[0xf3, 0x90], Special::Pause),
            (&[0xf3, 0x48, 0xa5], Special::Bulk),
            (&[0xf3, 0xaa], Special::Bulk),
        ] {
            assert_eq!(special_of(bytes), special, "{bytes:x?}");
        }
    }

    #[test]
    fn ordinary_instructions_are_plain() {
        for bytes in [
            &[0x90][..],
            &[0x48, 0x87, 0xc3],       // xchg of registers locks nothing
            &[0x48, 0xa5],             // movs without rep
            &[0xf3, 0x0f, 0x10, 0x00], // movss
            &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
            &[0x0f, 0xc7, 0xf0],             // rdrand
            &[0x0f, 0x01, 0xd0],             // xgetbv
            &[0xf3, 0x48, 0x0f, 0xae, 0xc0], // rdfsbase
            &[],
        ] {
            assert_eq!(kind(bytes), Kind::Plain, "{bytes:x?}");
        }
    }

    #[test]
    fn marks_give_their_kind_and_number() {
        assert_eq!(kind(&[0x0f, 0x1f, 0x80, 7, 1, 0x4c, 0x4d]), Kind::Mark(1, 7));
        assert_eq!(kind(&[0x0f, 0x1f, 0x80, 7, 1, 0x4c, 0x4e]), Kind::Plain);
    }

    #[test]
    fn numbers_and_the_list_agree() {
        assert!(Special::ALL.iter().enumerate().all(|(number, &special)| special as usize == number));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_kind(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            kind(&bytes);
        }
    }
}
