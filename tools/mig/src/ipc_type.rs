//! The primitive types of data and rights, with the Mach kernel's numbers and names.

/// A primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcType {
    /// The type's number in a descriptor; [`POLYMORPHIC`] if the sender chooses the type.
    pub number: u32,
    /// The type's name in C; empty if the definition gives a number.
    pub name: &'static str,
    /// The size of an element in bits, as far as the name implies it.
    pub bits: Bits,
}

/// The size of an element in bits, as far as a type's name implies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// The name implies this number of bits.
    Known(u32),
    /// The size of a right in a message, which depends on the target.
    Port,
    /// The name implies no size, so that the definition must give one.
    Unknown,
}

/// The number of a type that the sender chooses.
pub const POLYMORPHIC: u32 = u32::MAX;

const fn known(number: u32, name: &'static str, bits: u32) -> IpcType {
    IpcType { number, name, bits: Bits::Known(bits) }
}

const fn port(number: u32, name: &'static str) -> IpcType {
    IpcType { number, name, bits: Bits::Port }
}

/// A type of right that the sender chooses.
pub const ANY: IpcType = port(POLYMORPHIC, "MACH_MSG_TYPE_POLYMORPHIC");
/// A send right in a received message.
pub const PORT_SEND: IpcType = port(17, "MACH_MSG_TYPE_PORT_SEND");
const PORT_RECEIVE: IpcType = port(16, "MACH_MSG_TYPE_PORT_RECEIVE");
const PORT_SEND_ONCE: IpcType = port(18, "MACH_MSG_TYPE_PORT_SEND_ONCE");

/// The primitive types by name: each entry has the type in a sent message and in a received one.
const TABLE: [(IpcType, IpcType); 25] = {
    const fn both(of: IpcType) -> (IpcType, IpcType) {
        (of, of)
    }
    [
        both(known(0, "MACH_MSG_TYPE_UNSTRUCTURED", 0)),
        both(known(0, "MACH_MSG_TYPE_BIT", 1)),
        both(known(0, "MACH_MSG_TYPE_BOOLEAN", 32)),
        both(known(1, "MACH_MSG_TYPE_INTEGER_16", 16)),
        both(known(2, "MACH_MSG_TYPE_INTEGER_32", 32)),
        both(known(8, "MACH_MSG_TYPE_CHAR", 8)),
        both(known(9, "MACH_MSG_TYPE_BYTE", 8)),
        both(known(9, "MACH_MSG_TYPE_INTEGER_8", 8)),
        both(IpcType { number: 10, name: "MACH_MSG_TYPE_REAL", bits: Bits::Unknown }),
        both(known(10, "MACH_MSG_TYPE_REAL_32", 32)),
        both(known(10, "MACH_MSG_TYPE_REAL_64", 64)),
        both(known(11, "MACH_MSG_TYPE_INTEGER_64", 64)),
        both(IpcType { number: 12, name: "MACH_MSG_TYPE_STRING", bits: Bits::Unknown }),
        both(IpcType { number: 12, name: "MACH_MSG_TYPE_STRING_C", bits: Bits::Unknown }),
        both(known(15, "MACH_MSG_TYPE_PORT_NAME", 32)),
        (port(16, "MACH_MSG_TYPE_MOVE_RECEIVE"), PORT_RECEIVE),
        (port(17, "MACH_MSG_TYPE_MOVE_SEND"), PORT_SEND),
        (port(18, "MACH_MSG_TYPE_MOVE_SEND_ONCE"), PORT_SEND_ONCE),
        (port(19, "MACH_MSG_TYPE_COPY_SEND"), PORT_SEND),
        (port(20, "MACH_MSG_TYPE_MAKE_SEND"), PORT_SEND),
        (port(21, "MACH_MSG_TYPE_MAKE_SEND_ONCE"), PORT_SEND_ONCE),
        (ANY, PORT_RECEIVE),
        (ANY, PORT_SEND),
        (ANY, PORT_SEND_ONCE),
        (ANY, ANY),
    ]
};

impl IpcType {
    /// The types in a sent and in a received message that a name stands for. Upper and lower case
    /// differ, except in `polymorphic`.
    pub fn by_name(name: &str) -> Option<(IpcType, IpcType)> {
        if name.eq_ignore_ascii_case("polymorphic") {
            return Some((ANY, ANY));
        }
        TABLE.into_iter().find(|(sent, received)| {
            let own = if sent.number == POLYMORPHIC { received.name } else { sent.name };
            own == name
        })
    }

    /// A type that the definition gives as a number.
    pub fn by_number(number: u32) -> IpcType {
        IpcType { number, name: "", bits: Bits::Unknown }
    }

    /// Whether the type is a right, which the kernel translates between sender and receiver.
    pub fn is_port(self) -> bool {
        (16..=21).contains(&self.number)
    }

    /// Whether the sender chooses the type.
    pub fn is_polymorphic(self) -> bool {
        self.number == POLYMORPHIC
    }

    /// The C expression for the type.
    pub fn in_c(self) -> String {
        if self.name.is_empty() { self.number.to_string() } else { self.name.to_owned() }
    }
}
