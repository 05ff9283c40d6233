//! The operation and comparison of FUTEX_WAKE_OP.

/// The change of the second word by FUTEX_WAKE_OP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeOperation {
    /// The second word becomes the argument.
    Set(u32),
    /// The argument is added to the second word.
    Add(u32),
    /// The bits of the argument are set in the second word.
    Or(u32),
    /// The bits of the argument are cleared in the second word.
    AndNot(u32),
    /// The bits of the argument are toggled in the second word.
    Xor(u32),
}

/// How FUTEX_WAKE_OP compares the second word's old value; the numbers are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The old value is equal to the argument.
    Equal(u32),
    /// The old value is different from the argument.
    NotEqual(u32),
    /// The old value is less than the argument.
    Less(u32),
    /// The old value is less than or equal to the argument.
    LessOrEqual(u32),
    /// The old value is greater than the argument.
    Greater(u32),
    /// The old value is greater than or equal to the argument.
    GreaterOrEqual(u32),
}

impl WakeOperation {
    /// The new value of the second word.
    pub(crate) fn apply(self, old: u32) -> u32 {
        match self {
            WakeOperation::Set(argument) => argument,
            WakeOperation::Add(argument) => old.wrapping_add(argument),
            WakeOperation::Or(argument) => old | argument,
            WakeOperation::AndNot(argument) => old & !argument,
            WakeOperation::Xor(argument) => old ^ argument,
        }
    }
}

impl Comparison {
    /// Whether the comparison holds for `old`.
    pub(crate) fn holds(self, old: u32) -> bool {
        let old = old as i32;
        match self {
            Comparison::Equal(argument) => old == argument as i32,
            Comparison::NotEqual(argument) => old != argument as i32,
            Comparison::Less(argument) => old < argument as i32,
            Comparison::LessOrEqual(argument) => old <= argument as i32,
            Comparison::Greater(argument) => old > argument as i32,
            Comparison::GreaterOrEqual(argument) => old >= argument as i32,
        }
    }
}
