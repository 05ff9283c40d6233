//! Targets: a dialect of messages on a kind of machine, with the sizes of messages' parts.

use crate::ast::keywords;
use crate::ipc_type::Bits;

keywords! {
    /// A dialect of Mach messages.
    Dialect {
        /// CMU's and GNU's dialect, in which every item has a type descriptor.
        Typed = "typed",
        /// OSF's and Apple's dialect, in which only rights and out-of-line data have descriptors.
        Untyped = "untyped",
    }
}

/// A target. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target's name in options.
    pub name: &'static str,
    /// The dialect of messages.
    pub dialect: Dialect,
    /// The size of a message's header.
    pub header: u64,
    /// The size of a type descriptor in the short form.
    pub descriptor: u64,
    /// The size of a type descriptor in the long form.
    pub long_descriptor: u64,
    /// The multiple to which items are padded.
    pub word: u64,
    /// The largest alignment of a type in a message.
    pub alignment: u64,
    /// The size of a port's name in a message.
    pub port: u64,
    /// The size of a port in a message that the kernel itself sends or receives: a pointer.
    pub kernel_port: u64,
    /// The size of a pointer to out-of-line data.
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
        // GNU's first 64-bit format of messages, which Debian 12 uses.
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

    /// The target with a name, if there is one.
    pub fn by_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name == name)
    }

    /// The default target of a dialect, which is one of a 64-bit machine.
    pub fn of(dialect: Dialect) -> Target {
        Target::ALL.into_iter().find(|target| target.dialect == dialect).unwrap_or(Target::ALL[0])
    }

    /// The number of bits that an element of a type has on this target, if the type's name implies
    /// it.
    pub fn bits(&self, bits: Bits) -> Option<u32> {
        match bits {
            Bits::Known(bits) => Some(bits),
            Bits::Port => u32::try_from(self.port * 8).ok(),
            Bits::Unknown => None,
        }
    }

    /// Rounds a size up to the padding of items.
    pub fn padded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.word)
    }

    /// Whether the short form of a descriptor cannot describe `count` elements of `bits` bits.
    pub fn needs_long(&self, bits: u32, count: u64) -> bool {
        bits > 255 || count > 4095
    }
}
