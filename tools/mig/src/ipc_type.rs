//! The names that the Mach kernel gives to types of data and of rights.

/// A primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcType {
    /// Its number in a descriptor; [`POLYMORPHIC`] if it is decided when the message is sent.
    pub number: u32,
    /// Its name in C; empty if it was written as a number.
    pub name: &'static str,
    /// The bits of an element, if the name implies them.
    pub bits: Bits,
}

/// The bits of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// So many.
    Known(u32),
    /// As many as a right has in a message.
    Port,
    /// To be written.
    Unknown,
}

/// The number of a type that is decided when the message is sent.
pub const POLYMORPHIC: u32 = u32::MAX;

const fn known(number: u32, name: &'static str, bits: u32) -> IpcType {
    IpcType { number, name, bits: Bits::Known(bits) }
}

const fn port(number: u32, name: &'static str) -> IpcType {
    IpcType { number, name, bits: Bits::Port }
}

/// A type that is decided when the message is sent.
pub const ANY: IpcType = port(POLYMORPHIC, "MACH_MSG_TYPE_POLYMORPHIC");
/// A send right, as it is received.
pub const PORT_SEND: IpcType = port(17, "MACH_MSG_TYPE_PORT_SEND");
const PORT_RECEIVE: IpcType = port(16, "MACH_MSG_TYPE_PORT_RECEIVE");
const PORT_SEND_ONCE: IpcType = port(18, "MACH_MSG_TYPE_PORT_SEND_ONCE");

/// Types by name: what is sent, what is received.
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
    /// What a name stands for where it is sent and where it is received. Names are written exactly,
    /// but for `polymorphic`.
    pub fn by_name(name: &str) -> Option<(IpcType, IpcType)> {
        if name.eq_ignore_ascii_case("polymorphic") {
            return Some((ANY, ANY));
        }
        TABLE.into_iter().find(|(sent, received)| {
            let own = if sent.number == POLYMORPHIC { received.name } else { sent.name };
            own == name
        })
    }

    /// A type that was written as a number.
    pub fn by_number(number: u32) -> IpcType {
        IpcType { number, name: "", bits: Bits::Unknown }
    }

    /// Whether it is a right: something that the kernel translates.
    pub fn is_port(self) -> bool {
        (16..=21).contains(&self.number)
    }

    /// Whether the sender decides what it is.
    pub fn is_polymorphic(self) -> bool {
        self.number == POLYMORPHIC
    }

    /// The type in C.
    pub fn in_c(self) -> String {
        if self.name.is_empty() { self.number.to_string() } else { self.name.to_owned() }
    }
}
