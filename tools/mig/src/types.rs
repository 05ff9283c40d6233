//! Types after analysis: their form in messages, and in the programs of client and server.

use crate::ipc_type::IpcType;
use crate::target::Target;
use std::sync::Arc;

/// Where a message carries the data of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the message itself.
    Inline,
    /// In memory out of line, to which the message points.
    OutOfLine,
    /// In the message if the data fits, otherwise out of line.
    Either,
}

/// The way in which C passes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A single value that is neither array nor struct, such as a number or a right.
    Scalar,
    /// A C array: passed by address.
    Array,
    /// A C struct: passed by value.
    Struct,
    /// A C string, which ends with a zero byte.
    String,
}

/// The functions by which a server's stub converts values between the message's and the server's
/// type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// Converts a received value to the server's type.
    pub into: Option<String>,
    /// Converts the server's value to the message's type.
    pub out: Option<String>,
    /// Converts the payload of a protected port to the server's type.
    pub payload: Option<String>,
    /// Is called with the server's value after the server's routine has returned.
    pub destructor: Option<String>,
}

/// A type of the definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type's name; empty if the type has none of its own.
    pub name: String,
    /// The primitive type in a sent message.
    pub sent: IpcType,
    /// The primitive type in a received message.
    pub received: IpcType,
    /// The size of an element in bits.
    pub bits: u32,
    /// The number of elements: the most if the number varies; 0 if data out of line has no bound.
    pub count: u64,
    /// Whether the number of elements varies.
    pub variable: bool,
    /// Where a message carries the data.
    pub placement: Placement,
    /// The way in which C passes a value of the type.
    pub shape: Shape,
    /// The alignment in a message in bytes.
    pub alignment: u64,
    /// The type of an array's elements.
    pub element: Option<Arc<Type>>,
    /// `Some(true)` for `islong`, `Some(false)` for `isnotlong`.
    pub long: Option<bool>,
    /// `Some(true)` for `dealloc`, `Some(false)` for `notdealloc`.
    pub deallocate: Option<bool>,
    /// The C type in the client's program.
    pub user: String,
    /// The C type in the server's program.
    pub server: String,
    /// The C type by which the server's stub accesses the value in a message.
    pub message: String,
    /// The conversions of the type's translations.
    pub functions: Functions,
    /// The text of `PointerTo` and similar types in the definition.
    pub native: Option<String>,
}

impl Type {
    /// A type that consists of one element of a primitive type.
    pub fn primitive(sent: IpcType, received: IpcType, bits: u32) -> Type {
        Type {
            name: String::new(),
            sent,
            received,
            bits,
            count: 1,
            variable: false,
            placement: Placement::Inline,
            shape: Shape::Scalar,
            alignment: u64::from(bits).div_ceil(8).next_power_of_two(),
            element: None,
            long: None,
            deallocate: None,
            user: String::new(),
            server: String::new(),
            message: String::new(),
            functions: Functions::default(),
            native: None,
        }
    }

    /// This type under another name, without its translations.
    pub fn renamed(&self, name: &str) -> Type {
        Type {
            name: name.to_owned(),
            user: name.to_owned(),
            server: name.to_owned(),
            message: name.to_owned(),
            functions: Functions::default(),
            ..self.clone()
        }
    }

    /// The size of `count` elements in bytes, rounded up.
    pub fn bytes_of(&self, count: u64) -> u64 {
        (u64::from(self.bits) * count).div_ceil(8)
    }

    /// The most bytes that a message itself holds for a value of the type.
    pub fn inline_bytes(&self, target: &Target) -> u64 {
        match self.placement {
            Placement::OutOfLine => target.pointer,
            Placement::Inline => self.bytes_of(self.count),
            Placement::Either => self.bytes_of(self.count).max(target.pointer),
        }
    }

    /// The number of a descriptor's elements in one element of an array of varying size.
    pub fn multiplier(&self) -> u64 {
        match &self.element {
            Some(element) if self.variable => element.count,
            _ => 1,
        }
    }

    /// Whether programs pass the number of elements in a parameter of its own.
    pub fn is_counted(&self) -> bool {
        self.variable && self.shape != Shape::String
    }

    /// Whether a message with the type may carry rights or out-of-line memory.
    pub fn is_complex(&self) -> bool {
        self.sent.is_port() || self.sent.is_polymorphic() || self.placement != Placement::Inline
    }
}
