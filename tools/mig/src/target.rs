//! What messages look like on a kind of machine and in a dialect.

use crate::ast::keywords;
use crate::ipc_type::Bits;

keywords! {
    /// The two living dialects.
    Dialect {
        /// CMU's and GNU's: every item has a type descriptor.
        Typed = "typed",
        /// OSF's and Apple's: descriptors only for rights and out-of-line data.
        Untyped = "untyped",
    }
}

/// Sizes in bytes, as far as they depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// How an option names it.
    pub name: &'static str,
    /// The dialect.
    pub dialect: Dialect,
    /// A message's header.
    pub header: u64,
    /// A type descriptor.
    pub descriptor: u64,
    /// A type descriptor of the long form.
    pub long_descriptor: u64,
    /// What items are padded to.
    pub word: u64,
    /// The strongest alignment of anything in a message.
    pub alignment: u64,
    /// A port's name in a message.
    pub port: u64,
    /// The same in a message that the kernel itself writes or reads: a pointer to the port.
    pub kernel_port: u64,
    /// A pointer to out-of-line data.
    pub pointer: u64,
}

impl Target {
    /// All targets. The first of each dialect is its default.
    pub const ALL: [Target; 5] = [
        Target {
            name: "mach64",
            dialect: Dialect::Typed,
            header: 32,
            descriptor: 8,
            long_descriptor: 8,
            word: 8,
            alignment: 8,
            port: 8,
            kernel_port: 8,
            pointer: 8,
        },
        // GNU's first 64-bit form, which Debian 12 has.
        Target {
            name: "mach64-2022",
            dialect: Dialect::Typed,
            header: 32,
            descriptor: 4,
            long_descriptor: 12,
            word: 4,
            alignment: 4,
            port: 4,
            kernel_port: 8,
            pointer: 8,
        },
        Target {
            name: "mach32",
            dialect: Dialect::Typed,
            header: 24,
            descriptor: 4,
            long_descriptor: 12,
            word: 4,
            alignment: 4,
            port: 4,
            kernel_port: 4,
            pointer: 4,
        },
        Target {
            name: "untyped64",
            dialect: Dialect::Untyped,
            header: 24,
            descriptor: 12,
            long_descriptor: 16,
            word: 4,
            alignment: 4,
            port: 4,
            kernel_port: 4,
            pointer: 8,
        },
        Target {
            name: "untyped32",
            dialect: Dialect::Untyped,
            header: 24,
            descriptor: 12,
            long_descriptor: 12,
            word: 4,
            alignment: 4,
            port: 4,
            kernel_port: 4,
            pointer: 4,
        },
    ];

    /// The target of this name.
    pub fn by_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name == name)
    }

    /// A dialect's default target: 64 bits.
    pub fn of(dialect: Dialect) -> Target {
        Target::ALL.into_iter().find(|target| target.dialect == dialect).unwrap_or(Target::ALL[0])
    }

    /// The bits of an element of this type.
    pub fn bits(&self, bits: Bits) -> Option<u32> {
        match bits {
            Bits::Known(bits) => Some(bits),
            Bits::Port => u32::try_from(self.port * 8).ok(),
            Bits::Unknown => None,
        }
    }

    /// A size with its padding.
    pub fn padded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.word)
    }

    /// Whether an item of so many elements of so many bits needs a descriptor of the long form.
    pub fn needs_long(&self, bits: u32, count: u64) -> bool {
        bits > 255 || count > 4095
    }
}
