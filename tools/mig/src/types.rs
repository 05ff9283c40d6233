//! Types after analysis: what they are in a message, and in the programs on either side.

use crate::ipc_type::IpcType;
use crate::target::Target;
use std::sync::Arc;

/// Where data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the message.
    Inline,
    /// In memory that the message points to.
    OutOfLine,
    /// In the message if there is not too much.
    Either,
}

/// How C passes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    Scalar,
    /// A C array: passed by address.
    Array,
    /// A C struct: passed by value.
    Struct,
    /// A C string: up to and with a zero.
    String,
}

/// Functions between a message's type and the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// From the message's type to the server's.
    pub into: Option<String>,
    /// From the server's type to the message's.
    pub out: Option<String>,
    /// From the payload of a protected port to the server's type.
    pub payload: Option<String>,
    /// Called with the server's value after the server's routine.
    pub destructor: Option<String>,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its name in the definition; empty inside of another.
    pub name: String,
    /// What is sent.
    pub sent: IpcType,
    /// What is received.
    pub received: IpcType,
    /// Bits of an element.
    pub bits: u32,
    /// Elements; of a variable array the most, of an unbounded one out of line 0.
    pub count: u64,
    /// Whether the number of elements varies.
    pub variable: bool,
    /// Where the data lies.
    pub placement: Placement,
    /// How C passes it.
    pub shape: Shape,
    /// Alignment in bytes.
    pub alignment: u64,
    /// What an array consists of.
    pub element: Option<Arc<Type>>,
    /// `islong` or `isnotlong`.
    pub long: Option<bool>,
    /// `dealloc` or `notdealloc`.
    pub deallocate: Option<bool>,
    /// The C type in the client.
    pub user: String,
    /// The C type in the server.
    pub server: String,
    /// The C type in the server's view of a message.
    pub message: String,
    /// Translations.
    pub functions: Functions,
    /// `PointerTo` and its relatives, as written.
    pub native: Option<String>,
}

impl Type {
    /// A primitive type.
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

    /// The same type under another name: translations do not come along.
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

    /// Bytes of so many elements.
    pub fn bytes_of(&self, count: u64) -> u64 {
        (u64::from(self.bits) * count).div_ceil(8)
    }

    /// The most bytes that are in a message for it.
    pub fn inline_bytes(&self, target: &Target) -> u64 {
        match self.placement {
            Placement::OutOfLine => target.pointer,
            Placement::Inline => self.bytes_of(self.count),
            Placement::Either => self.bytes_of(self.count).max(target.pointer),
        }
    }

    /// How many elements of the descriptor are one element of the array.
    pub fn multiplier(&self) -> u64 {
        match &self.element {
            Some(element) if self.variable => element.count,
            _ => 1,
        }
    }

    /// Whether programs pass how many elements there are.
    pub fn is_counted(&self) -> bool {
        self.variable && self.shape != Shape::String
    }

    /// Whether it holds rights or points out of the message, always or sometimes.
    pub fn is_complex(&self) -> bool {
        self.sent.is_port() || self.sent.is_polymorphic() || self.placement != Placement::Inline
    }
}
