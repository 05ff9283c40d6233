//! Ways for the kernel to go wrong on demand of the debugger.

/// Faults of the kernel that the debugger can provoke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// A panic.
    Panic,
    /// A read of an address that is not mapped.
    Fault,
    /// A read of an unmapped address while the stack pointer points into no stack.
    Entry,
    /// The kernel's stack runs into its guard page.
    Stack,
    /// A write to the kernel's code, at the address where it runs.
    Code,
    /// A write to the kernel's code through the direct map.
    CodeAlias,
    /// The kernel executes its own data.
    Data,
}
