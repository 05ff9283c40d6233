//! The syntax tree of an interface definition: statements, types and arguments, each with its place
//! in the source.

use crate::ipc_type::IpcType;
use crate::source::Span;

/// A name or a text, with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The characters of the name.
    pub text: String,
    /// The place in the source.
    pub span: Span,
}

/// A number with its place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number's value.
    pub value: u64,
    /// The place in the source.
    pub span: Span,
}

/// A statement with the comment in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The statement's kind, with its operands.
    pub kind: StatementKind,
    /// The whole statement.
    pub span: Span,
    /// The comment directly in front of the statement, without comment marks; may be empty.
    pub comment: String,
}

/// Which of the generated C files include the file of an import statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// `import`: all generated files.
    All,
    /// `uimport`: the files of the user, that is the client.
    User,
    /// `simport`: the files of the server.
    Server,
    /// `dimport`: the header of ids.
    Definitions,
    /// `iimport`: the internal header.
    Internal,
}

/// A kind of statement, with its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `subsystem [KernelUser] [KernelServer] name base`
    Subsystem {
        /// Whether clients are in the kernel.
        kernel_user: bool,
        /// Whether the server is in the kernel.
        kernel_server: bool,
        /// The subsystem's name.
        name: Name,
        /// The id of the subsystem's first routine.
        base: Number,
    },
    /// `type name = ...`
    Type {
        /// The name that the statement defines.
        name: Name,
        /// The type that the name stands for.
        expression: TypeExpression,
    },
    /// `routine name (...)` or `simpleroutine name (...)`
    Routine {
        /// Whether the routine is a `simpleroutine`, which has no reply.
        simple: bool,
        /// The routine's name.
        name: Name,
        /// The routine's arguments, in order.
        arguments: Vec<Argument>,
    },
    /// `skip [n]`: leaves ids without a routine.
    Skip(u64),
    /// `import <file>`, `uimport`, ...: the file's name includes its quotation marks or brackets.
    Import(ImportKind, Name),
    /// `rcsid "..."`: a text that the C files hold as a string.
    RcsId(Name),
    /// `serverprefix name`: the prefix of the names of the server's functions.
    ServerPrefix(Name),
    /// `userprefix name`: the prefix of the names of the client's functions.
    UserPrefix(Name),
    /// `serverdemux name`: the name of the server's demultiplexer.
    ServerDemux(Name),
    /// `msgoption expression`: options of `mach_msg` for the routines that follow.
    MessageOption(Name),
    /// `waittime expression` or `nowaittime`: the timeout of receiving replies, for the routines
    /// that follow.
    WaitTime(Option<Name>),
    /// `sendtime expression` or `nosendtime`: the timeout of sending requests, for the routines
    /// that follow.
    SendTime(Option<Name>),
    /// `error name`: the function that stubs would call for errors.
    Error(Name),
    /// `UserTypeLimit n`: the untyped dialect accepts it without effect.
    UserTypeLimit(u64),
    /// `OnStackLimit n`: the untyped dialect accepts it without effect.
    OnStackLimit(u64),
    /// `UseSpecialReplyPort 0|1`: whether replies come to the thread's special reply port.
    UseSpecialReplyPort(bool),
    /// `ConsumeOnSendError None|Timeout|Any`: when a client destroys a request that it could not
    /// send.
    ConsumeOnSendError(Name),
}

/// A type with its translations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeExpression {
    /// The type before translations.
    pub specification: Specification,
    /// The translations, in the order of the source.
    pub translations: Vec<Translation>,
    /// The place in the source.
    pub span: Span,
}

/// A type without translations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Specification {
    /// `in` or `in | out`: a primitive type, with the size in bits and the flags of the long form.
    Ipc {
        /// The primitive type that the sender of a message gives.
        sent: IpcType,
        /// The primitive type that the receiver of a message sees.
        received: IpcType,
        /// The bits of an element and the flags, if the type is written in the long form.
        long: Option<(Number, Vec<Flag>)>,
        /// The place in the source.
        span: Span,
    },
    /// A type that another statement defines.
    Named(Name),
    /// `array [] of`, `array [*] of`, `array [*:n] of`: an array of varying size.
    VariableArray {
        /// The most elements, or none if the array is unbounded.
        maximum: Option<Number>,
        /// The type of an element.
        of: Box<Specification>,
    },
    /// `array [n] of`: an array of fixed size.
    Array {
        /// The number of elements.
        count: Number,
        /// The type of an element.
        of: Box<Specification>,
    },
    /// `^ type`: data of this type travels out of line.
    Pointer(Box<Specification>, Span),
    /// `struct [n] of`: an array of fixed size that C passes as a struct.
    StructArray {
        /// The number of elements.
        count: Number,
        /// The type of an element.
        of: Box<Specification>,
    },
    /// `struct { type name; ... }`: a struct with named members.
    Struct {
        /// The struct's members, in order.
        members: Vec<Member>,
        /// The place in the source.
        span: Span,
    },
    /// `c_string [n]` or `c_string [* : n]`: a string that ends with a zero.
    String {
        /// The string's room in bytes, which includes the final zero.
        size: Number,
        /// Whether a message carries only the bytes that the string has (`* : n`), not its whole
        /// room.
        varying: bool,
    },
    /// `PointerTo(type)`, `PointerToIfNot(type, value)`, `ValueOf(type)`: the keyword and its
    /// operands in C.
    Native(Name, Vec<Name>),
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name of the member's type.
    pub of: Name,
    /// The number of elements, if the member is an array.
    pub count: Option<Number>,
    /// The member's name.
    pub name: Name,
}

/// A translation of a type: the C types and functions that stubs use for values of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Translation {
    /// `intran: to function(from)`: the server's stub converts a received value with the function.
    In {
        /// The type that the server's routine takes.
        to: Name,
        /// The converting function.
        function: Name,
        /// The type in the message.
        from: Name,
    },
    /// `outtran: to function(from)`: the server's stub converts a replied value with the function.
    Out {
        /// The type in the message.
        to: Name,
        /// The converting function.
        function: Name,
        /// The type that the server's routine gives.
        from: Name,
    },
    /// `intranpayload: to function`: the server's stub converts the payload of a protected port.
    Payload {
        /// The type that the server's routine takes.
        to: Name,
        /// The converting function.
        function: Name,
    },
    /// `destructor: function(type)`: the server's stub calls the function after the server's
    /// routine.
    Destructor {
        /// The function that is called.
        function: Name,
        /// The type of the server's value.
        of: Name,
    },
    /// `ctype: type`: the C type in client and server.
    CType(Name),
    /// `cusertype: type`: the C type in the client.
    UserType(Name),
    /// `cservertype: type`: the C type in the server.
    ServerType(Name),
}

/// A routine's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The direction and its place in the source, if the argument has one.
    pub direction: Option<(Direction, Span)>,
    /// The argument's name.
    pub name: Name,
    /// The name of the argument's type.
    pub type_name: Name,
    /// The argument's type, if the argument defines it with `=`.
    pub expression: Option<TypeExpression>,
    /// Flags such as `dealloc`, in the order of the source.
    pub flags: Vec<Flag>,
}

macro_rules! keywords {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// The keyword in the source, in lower case.
            pub fn keyword(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The value that a keyword stands for; letters may be upper or lower case.
            pub fn from_keyword(word: &str) -> Option<$name> {
                $(if word.eq_ignore_ascii_case($text) { return Some($name::$variant); })*
                None
            }
        }
    };
}
pub(crate) use keywords;

keywords! {
    /// The direction of an argument, or its role in the call.
    Direction {
        /// The client sends the value to the server.
        In = "in",
        /// The server returns the value to the client.
        Out = "out",
        /// The client sends a value and the server returns one.
        InOut = "inout",
        /// The port to which the request is sent.
        RequestPort = "requestport",
        /// The port to which the reply is sent.
        ReplyPort = "replyport",
        /// The reply port, as a parameter of the server's function only.
        ServerReplyPort = "sreplyport",
        /// The reply port, as a parameter of the client's function only.
        UserReplyPort = "ureplyport",
        /// How long the client waits for the reply, in milliseconds.
        WaitTime = "waittime",
        /// How long the client waits until the request is taken, in milliseconds.
        SendTime = "sendtime",
        /// Options of the client's call of `mach_msg`.
        MessageOption = "msgoption",
        /// The sequence number of the request at the port that received it.
        SequenceNumber = "msgseqno",
        /// The security token of the peer: of the request at the server, of the reply at the
        /// client.
        SecurityToken = "sectoken",
        /// The security token of the request, at the server.
        ServerSecurityToken = "serversectoken",
        /// The security token of the reply, at the client.
        UserSecurityToken = "usersectoken",
        /// The audit token of the peer: of the request at the server, of the reply at the client.
        AuditToken = "audittoken",
        /// The audit token of the request, at the server.
        ServerAuditToken = "serveraudittoken",
        /// The audit token of the reply, at the client.
        UserAuditToken = "useraudittoken",
        /// The context of the server's port, as a parameter of the server's function.
        ServerContextToken = "servercontexttoken",
        /// A parameter of the server's function only, which no message carries.
        ServerImplementation = "serverimpl",
        /// A parameter of the client's function only, which no message carries.
        UserImplementation = "userimpl",
    }
}

/// A flag of an argument or of a long form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag's keyword.
    pub kind: FlagKind,
    /// Whether `[]` follows: then the program decides about the flag in each call.
    pub variable: bool,
    /// The place in the source.
    pub span: Span,
}

keywords! {
    /// The keyword of a flag.
    FlagKind {
        /// The sender's right or memory is taken from it when the message is sent.
        Dealloc = "dealloc",
        /// The sender keeps its right or memory.
        NotDealloc = "notdealloc",
        /// The server receives out-of-line data as a copy object, which is not mapped.
        ServerCopy = "servercopy",
        /// The type descriptor has the long form.
        IsLong = "islong",
        /// The type descriptor has the short form.
        IsNotLong = "isnotlong",
        /// The caller passes the room that it has for an `out` array.
        CountInOut = "countinout",
        /// Accepted for compatibility; has no effect.
        RetCode = "retcode",
        /// The array has as many elements as the counted array before it.
        SameCount = "samecount",
        /// The kernel copies out-of-line data physically.
        PhysicalCopy = "physicalcopy",
        /// Out-of-line data is received into memory that the caller names.
        Overwrite = "overwrite",
        /// The buffer is on the stack.
        Auto = "auto",
        /// The server's function does not change the value.
        Const = "const",
    }
}
