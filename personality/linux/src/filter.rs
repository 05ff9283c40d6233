//! Filters of system calls (seccomp(2)): programs of the classic Berkeley packet filter, which look
//! at a call and say what becomes of it.

use crate::layout::{Fields, Writer};
use crate::names::number::{exit, read, rt_sigreturn, write};
use alloc::sync::Arc;
use inet::filter::{Program, Rules, Subject};
use mach::machine::SystemCall;
use unix::{Error, Result};

/// The most instructions of all filters of a thread; each filter counts some more.
const CHAIN_LIMIT: usize = 32768;
const FILTER_COST: usize = 4;
/// Bytes of what filters look at (struct seccomp_data).
const DATA_SIZE: usize = 64;
/// AUDIT_ARCH_X86_64.
pub(crate) const ARCHITECTURE: u32 = 0xc000_003e;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The process ends by SIGSYS.
    KillProcess,
    /// The thread ends by SIGSYS.
    KillThread,
    /// The process ends by SIGKILL, because the call is none of those that strict mode allows.
    Forbidden,
    /// The thread gets SIGSYS with this value instead of making the call.
    Trap(u16),
    /// The call fails with this error number.
    Fail(u16),
    /// The tracer decides, which gets this value.
    Trace(u16),
    /// The call is made.
    Allow,
}

impl Action {
    /// The action for the value that a filter returns. One that is not known ends the process.
    fn of(value: u32) -> Action {
        const NO_CALL: u16 = 38;
        const LAST_ERROR: u16 = 4095;
        let data = value as u16;
        match value & 0xffff_0000 {
            0 => Action::KillThread,
            0x0003_0000 => Action::Trap(data),
            0x0005_0000 => Action::Fail(data.min(LAST_ERROR)),
            // There is no supervisor that could be asked (SECCOMP_RET_USER_NOTIF).
            0x7fc0_0000 => Action::Fail(NO_CALL),
            0x7ff0_0000 => Action::Trace(data),
            // A filter that only logs allows the call.
            0x7ffc_0000 | 0x7fff_0000 => Action::Allow,
            _ => Action::KillProcess,
        }
    }

    /// Whether filters may return this action (SECCOMP_GET_ACTION_AVAIL).
    pub(crate) fn is_available(value: u32) -> bool {
        const ALL: [u32; 7] =
            [0, 0x0003_0000, 0x0005_0000, 0x7ff0_0000, 0x7ffc_0000, 0x7fff_0000, 0x8000_0000];
        ALL.contains(&value)
    }
}

/// The filters of a thread.
#[derive(Debug)]
pub(crate) enum Filters {
    /// Only read, write, exit and rt_sigreturn are allowed (strict mode).
    Strict,
    /// A filter, and those that were set before it. All of them look at each call.
    Chain {
        /// The instructions of the newest filter.
        program: Program,
        /// The older filters.
        before: Option<Arc<Filters>>,
        /// How many instructions all have, with what each filter counts in addition.
        cost: usize,
    },
}

impl Filters {
    /// Adds a filter to those before. `EINVAL` if it is no valid program, `ENOMEM` if there are too
    /// many instructions.
    pub(crate) fn add(bytes: &[u8], before: Option<Arc<Filters>>) -> Result<Filters> {
        let program = Program::new(bytes, Rules::Words(DATA_SIZE as u32))?;
        let old = match before.as_deref() {
            Some(Filters::Strict) => return Err(Error::EINVAL),
            Some(Filters::Chain { cost, .. }) => *cost,
            None => 0,
        };
        let cost = old + program.length() + FILTER_COST;
        if cost > CHAIN_LIMIT {
            return Err(Error::ENOMEM);
        }
        Ok(Filters::Chain { program, before, cost })
    }

    /// What becomes of a call that is made at this address: of all filters the one decides that is
    /// strictest, and of equal ones the newest.
    pub(crate) fn decide(&self, call: &SystemCall, address: u64) -> Action {
        let data = Data::of(call, address);
        let (mut strictest, mut next) = (0x7fff_0000_u32, Some(self));
        while let Some(filters) = next {
            let Filters::Chain { program, before, .. } = filters else {
                let allowed = [read, write, exit, rt_sigreturn].contains(&call.number);
                return if allowed { Action::Allow } else { Action::Forbidden };
            };
            let value = program.run(&data);
            // Compared as signed numbers, killing the process is below all others.
            if ((value & 0xffff_0000) as i32) < (strictest & 0xffff_0000) as i32 {
                strictest = value;
            }
            next = before.as_deref();
        }
        Action::of(strictest)
    }

    /// Whether `ancestor` is this list of filters or the end of it.
    pub(crate) fn continues(filters: Option<&Arc<Filters>>, ancestor: Option<&Arc<Filters>>) -> bool {
        let Some(ancestor) = ancestor else { return true };
        let mut next = filters;
        while let Some(filters) = next {
            if Arc::ptr_eq(filters, ancestor) {
                return true;
            }
            next = match &**filters {
                Filters::Chain { before, .. } => before.as_ref(),
                Filters::Strict => None,
            };
        }
        false
    }
}

/// What filters look at: number, architecture, address, arguments (struct seccomp_data).
struct Data([u8; DATA_SIZE]);

impl Data {
    fn of(call: &SystemCall, address: u64) -> Data {
        let writer = Writer::new().u32(0, call.number as u32).u32(4, ARCHITECTURE).u64(8, address);
        let arguments = call.arguments.into_iter().enumerate();
        Data(arguments.fold(writer, |writer, (index, argument)| writer.u64(16 + 8 * index, argument)).done())
    }
}

impl Subject for Data {
    fn length(&self) -> u32 {
        DATA_SIZE as u32
    }

    fn load(&self, at: i64, _size: u32) -> Option<u32> {
        self.0.u32_at(usize::try_from(at).ok()?).ok()
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

    fn filter(program: &[[u8; 8]]) -> Result<Filters> {
        Filters::add(&program.concat(), None)
    }

    fn call(number: u64) -> SystemCall {
        SystemCall { number, arguments: [1, 2, 3, 4, 5, 6] }
    }

    const ALLOW: u32 = 0x7fff_0000;

    #[test]
    fn a_filter_decides_by_number_and_arguments() {
        let program = [
            i(0x20, 0, 0, 4),
            i(0x15, 1, 0, ARCHITECTURE),
            i(0x06, 0, 0, 0x8000_0000),
            i(0x20, 0, 0, 0),
            i(0x15, 0, 1, 39),
            i(0x06, 0, 0, 0x0005_0000 | 13),
            i(0x20, 0, 0, 24),
            i(0x35, 1, 0, 3),
            i(0x06, 0, 0, 0x0003_0007),
            i(0x06, 0, 0, ALLOW),
        ];
        let filter = filter(&program).unwrap();
        assert_eq!(filter.decide(&call(39), 0), Action::Fail(13));
        assert_eq!(filter.decide(&call(1), 0), Action::Trap(7));
        let large = SystemCall { number: 1, arguments: [0, 3, 0, 0, 0, 0] };
        assert_eq!(filter.decide(&large, 0), Action::Allow);
    }

    #[test]
    fn programs_that_are_not_valid_are_refused() {
        let end = i(0x06, 0, 0, ALLOW);
        for (program, why) in [
            (vec![], "empty"),
            (vec![i(0x20, 0, 0, 0)], "no end"),
            (vec![i(0x20, 0, 0, 2), end], "an offset that is not aligned"),
            (vec![i(0x20, 0, 0, 64), end], "beyond the data"),
            (vec![i(0x05, 0, 0, 1), end], "a jump beyond the end"),
            (vec![i(0x05, 0, 0, u32::MAX), end], "a jump back"),
            (vec![i(0x15, 0, 1, 0), end], "a jump beyond the end"),
            (vec![i(0x34, 0, 0, 0), end], "a division by 0"),
            (vec![i(0x64, 0, 0, 32), end], "too wide a shift"),
            (vec![i(0x60, 0, 0, 0), end], "a cell that was not written"),
            (vec![i(0x02, 0, 0, 16), end], "no such cell"),
            (vec![i(0x15, 0, 1, 0), i(0x02, 0, 0, 0), i(0x60, 0, 0, 0), end], "written on one way only"),
            (vec![i(0x28, 0, 0, 0), end], "half a word"),
            (vec![i(0x94, 0, 0, 1), end], "a remainder"),
            (vec![i(0xff, 0, 0, 0), end], "no instruction"),
        ] {
            assert!(matches!(filter(&program), Err(Error::EINVAL)), "{why}");
        }
        assert!(filter(&[end; 4096]).is_ok());
        assert!(filter(&[end; 4097]).is_err());
    }

    #[test]
    fn arithmetic_and_cells_work() {
        let (ret_a, tax, txa) = (i(0x16, 0, 0, 0), i(0x07, 0, 0, 0), i(0x87, 0, 0, 0));
        let value = |program: &[[u8; 8]]| match filter(program).unwrap() {
            Filters::Chain { program, .. } => program.run(&Data::of(&call(7), 8)),
            Filters::Strict => panic!("no filter"),
        };
        let load = i(0x00, 0, 0, 12);
        for (code, operand, expected) in [
            (0x04, 5, 17),
            (0x14, 13, u32::MAX),
            (0x24, 3, 36),
            (0x34, 5, 2),
            (0x44, 3, 15),
            (0x54, 6, 4),
            (0xa4, 6, 10),
        ] {
            assert_eq!(value(&[load, i(code, 0, 0, operand), ret_a]), expected, "{code:x}");
        }
        assert_eq!(
            value(&[load, i(0x64, 0, 0, 2), i(0x74, 0, 0, 1), i(0x84, 0, 0, 0), ret_a]),
            24_u32.wrapping_neg()
        );
        assert_eq!(value(&[load, tax, i(0x0c, 0, 0, 0), i(0x02, 0, 0, 3), i(0x61, 0, 0, 3), txa, ret_a]), 24);
        assert_eq!(value(&[load, i(0x3c, 0, 0, 0), ret_a]), 0, "a division by the index 0");
        assert_eq!(value(&[i(0x80, 0, 0, 0), ret_a]), 64);
    }

    #[test]
    fn of_several_filters_the_strictest_decides() {
        let returns = |value| i(0x06, 0, 0, value).to_vec();
        let chain = |values: &[u32]| {
            values
                .iter()
                .fold(None, |before, value| Some(Arc::new(Filters::add(&returns(*value), before).unwrap())))
        };
        let decide = |values: &[u32]| chain(values).unwrap().decide(&call(1), 0);
        assert_eq!(decide(&[ALLOW, 0x0005_0001]), Action::Fail(1));
        assert_eq!(decide(&[0x0005_0001, 0x0005_0002]), Action::Fail(2), "the newest");
        assert_eq!(decide(&[0, 0x8000_0000, ALLOW]), Action::KillProcess);
        assert_eq!(decide(&[0x1234_0000]), Action::KillProcess, "no action");
        let (first, other) = (chain(&[ALLOW]), chain(&[ALLOW]));
        let second = Some(Arc::new(Filters::add(&returns(ALLOW), first.clone()).unwrap()));
        assert!(Filters::continues(second.as_ref(), first.as_ref()));
        assert!(!Filters::continues(second.as_ref(), other.as_ref()));
        assert!(Filters::Strict.decide(&call(1), 0) == Action::Allow);
        assert!(Filters::Strict.decide(&call(2), 0) == Action::Forbidden);
    }

    proptest::proptest! {
        /// Whatever a program is, it is refused, or it ends with some action.
        #[test]
        fn every_program_ends(program in proptest::collection::vec((0_u16..0x100, 0_u8..4, 0_u8..4, 0_u32..70), 1..12)) {
            let bytes: Vec<[u8; 8]> = program.iter().map(|(code, t, f, operand)| i(*code, *t, *f, *operand)).collect();
            if let Ok(filter) = filter(&bytes) {
                let _ = filter.decide(&call(5), 77);
            }
        }
    }
}
