//! What FUTEX_WAKE_OP does with its second word.

/// What to do with the second word.
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

/// How the second word's old value is compared, as signed numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Equal to.
    Equal(u32),
    /// Different from.
    NotEqual(u32),
    /// Less than.
    Less(u32),
    /// Less than or equal to.
    LessOrEqual(u32),
    /// Greater than.
    Greater(u32),
    /// Greater than or equal to.
    GreaterOrEqual(u32),
}

impl WakeOperation {
    /// The word's new value.
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
