//! The kinds of calls, and their possible results.

/// How many results are distinguished: 0 is success, 1 to 15 are values of the ErrorCode word
/// including its phase, 16 is any other value.
pub(crate) const COLUMNS: usize = 17;

macro_rules! kinds {
    ($($kind:ident $entry:literal;)*) => {
        /// The kinds of actions of an attacker.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Kind {
            $($kind,)*
        }

        impl Kind {
            pub(crate) const ALL: &[Kind] = &[$(Kind::$kind,)*];
            pub(crate) const COUNT: usize = Self::ALL.len();

            /// The offset in the kernel interface page of the address of the call's stub; 0 if the
            /// action is not a call.
            pub(crate) const fn entry(self) -> usize {
                match self { $(Kind::$kind => $entry,)* }
            }
        }
    };
}

kinds! {
    Ipc 0x1c0;
    Lipc 0x1c8;
    ExchangeRegisters 0x1d8;
    ThreadControl 0x1a8;
    SystemClock 0x1e0;
    ThreadSwitch 0x1e8;
    Schedule 0x1f0;
    Unmap 0x1d0;
    SpaceControl 0x1a0;
    ProcessorControl 0x1b0;
    MemoryControl 0x1b8;
    SpaceOptions 0x1f8;
    MapControl 0x200;
    ThreadState 0x208;
    Notify 0x210;
    ForeignCall 0;
    Interrupt 0;
    Instruction 0;
    Fault 0;
    Port 0;
    InsideStub 0;
}

impl Kind {
    /// The results that this call must have had at the end, as bits: success, and every error that
    /// the interface defines for it.
    pub(crate) const fn expected(self) -> u32 {
        match self {
            // The errors of the send phase and of the receive phase: timeout, no partner,
            // cancelled, overflow, timeouts of transfers by the invoker's and by the partner's
            // faults, abortion.
            Kind::Ipc | Kind::Lipc => bits(&[0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
            Kind::ExchangeRegisters => bits(&[0, 2]),
            Kind::ThreadControl => bits(&[0, 1, 2, 3, 4, 6, 8]),
            Kind::SystemClock | Kind::ThreadSwitch | Kind::Unmap => bits(&[0]),
            Kind::Schedule => bits(&[0, 1, 2, 5]),
            Kind::SpaceControl => bits(&[0, 1, 2, 3, 6, 7, 8]),
            Kind::ProcessorControl => bits(&[0, 1, 5]),
            Kind::MemoryControl => bits(&[0, 1, 5]),
            Kind::SpaceOptions => bits(&[0, 1, 3, 5, 8]),
            Kind::MapControl => bits(&[0, 1, 3, 5, 8]),
            Kind::ThreadState => bits(&[0, 1, 2, 5, 8]),
            Kind::Notify => bits(&[0, 2]),
            _ => 0,
        }
    }
}

const fn bits(columns: &[u32]) -> u32 {
    let (mut bits, mut index) = (0, 0);
    while index < columns.len() {
        bits |= 1 << columns[index];
        index += 1;
    }
    bits
}
