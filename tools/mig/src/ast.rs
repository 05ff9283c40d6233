//! An interface definition as it is written: statements, types and arguments, each with its place.

use crate::ipc_type::IpcType;
use crate::source::Span;

/// A name or a text, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text.
    pub text: String,
    /// The place.
    pub span: Span,
}

/// A number with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The value.
    pub value: u64,
    /// The place.
    pub span: Span,
}

/// A statement and the comment in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// The whole statement.
    pub span: Span,
    /// The comment directly in front of it, without its marks; may be empty.
    pub comment: String,
}

/// Which C file has an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// `import`: all of them.
    All,
    /// `uimport`: the user's.
    User,
    /// `simport`: the server's.
    Server,
    /// `dimport`: the headers of definitions.
    Definitions,
    /// `iimport`: internal headers.
    Internal,
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `subsystem [KernelUser] [KernelServer] name base`
    Subsystem {
        /// Clients are in the kernel.
        kernel_user: bool,
        /// The server is in the kernel.
        kernel_server: bool,
        /// Its name.
        name: Name,
        /// The id of its first routine.
        base: Number,
    },
    /// `type name = ...`
    Type {
        /// Its name.
        name: Name,
        /// What it is.
        expression: TypeExpression,
    },
    /// `routine name (...)` or `simpleroutine name (...)`
    Routine {
        /// There is no reply.
        simple: bool,
        /// Its name.
        name: Name,
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// `skip [n]`: ids that no routine has.
    Skip(u64),
    /// `import <file>` and its relatives; the file's name is with its marks.
    Import(ImportKind, Name),
    /// `rcsid "..."`
    RcsId(Name),
    /// `serverprefix name`
    ServerPrefix(Name),
    /// `userprefix name`
    UserPrefix(Name),
    /// `serverdemux name`
    ServerDemux(Name),
    /// `msgoption expression`: for the routines that follow.
    MessageOption(Name),
    /// `waittime expression`, or `nowaittime`.
    WaitTime(Option<Name>),
    /// `sendtime expression`, or `nosendtime`.
    SendTime(Option<Name>),
    /// `error name`: the function that is called for errors.
    Error(Name),
    /// `UserTypeLimit n`
    UserTypeLimit(u64),
    /// `OnStackLimit n`
    OnStackLimit(u64),
    /// `UseSpecialReplyPort 0|1`
    UseSpecialReplyPort(bool),
    /// `ConsumeOnSendError None|Timeout|Any`
    ConsumeOnSendError(Name),
}

/// A type with its translations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeExpression {
    /// The type.
    pub specification: Specification,
    /// Translations, in their order.
    pub translations: Vec<Translation>,
    /// The place.
    pub span: Span,
}

/// A type without translations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Specification {
    /// `in` or `in | out`, with the size in bits and the flags of the long form.
    Ipc {
        /// The type of what is sent.
        sent: IpcType,
        /// The type of what is received.
        received: IpcType,
        /// The long form: bits of an element, and flags.
        long: Option<(Number, Vec<Flag>)>,
        /// The place.
        span: Span,
    },
    /// Another type.
    Named(Name),
    /// `array [] of`, `array [*] of`, `array [*:n] of`
    VariableArray {
        /// The most elements, if there is a bound.
        maximum: Option<Number>,
        /// An element.
        of: Box<Specification>,
    },
    /// `array [n] of`
    Array {
        /// How many elements.
        count: Number,
        /// An element.
        of: Box<Specification>,
    },
    /// `^`: out of line.
    Pointer(Box<Specification>, Span),
    /// `struct [n] of`
    StructArray {
        /// How many elements.
        count: Number,
        /// An element.
        of: Box<Specification>,
    },
    /// `struct { type name; ... }`
    Struct {
        /// The members.
        members: Vec<Member>,
        /// The place.
        span: Span,
    },
    /// `c_string [n]` or `c_string [* : n]`
    String {
        /// Bytes, with the zero at the end.
        size: Number,
        /// Only as many bytes are sent as there are.
        varying: bool,
    },
    /// `PointerTo(type)`, `PointerToIfNot(type, value)`, `ValueOf(type)`: the words in C.
    Native(Name, Vec<Name>),
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its type.
    pub of: Name,
    /// How many there are, if it is an array.
    pub count: Option<Number>,
    /// Its name.
    pub name: Name,
}

/// What a type is for the programs on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Translation {
    /// `intran: to function(from)`: when the server receives.
    In {
        /// The server's type.
        to: Name,
        /// The function.
        function: Name,
        /// The message's type.
        from: Name,
    },
    /// `outtran: to function(from)`: when the server replies.
    Out {
        /// The message's type.
        to: Name,
        /// The function.
        function: Name,
        /// The server's type.
        from: Name,
    },
    /// `intranpayload: to function`: from the payload of a protected port.
    Payload {
        /// The server's type.
        to: Name,
        /// The function.
        function: Name,
    },
    /// `destructor: function(type)`: when the server's routine has returned.
    Destructor {
        /// The function.
        function: Name,
        /// The server's type.
        of: Name,
    },
    /// `ctype: type`: in both programs.
    CType(Name),
    /// `cusertype: type`
    UserType(Name),
    /// `cservertype: type`
    ServerType(Name),
}

/// A routine's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Where it goes, if that is written.
    pub direction: Option<(Direction, Span)>,
    /// Its name.
    pub name: Name,
    /// Its type's name.
    pub type_name: Name,
    /// Its type, if it is written here.
    pub expression: Option<TypeExpression>,
    /// Flags.
    pub flags: Vec<Flag>,
}

macro_rules! keywords {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// The keyword, in lower case.
            pub fn keyword(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// What a keyword means, in upper or lower case.
            pub fn from_keyword(word: &str) -> Option<$name> {
                $(if word.eq_ignore_ascii_case($text) { return Some($name::$variant); })*
                None
            }
        }
    };
}
pub(crate) use keywords;

keywords! {
    /// Where an argument goes.
    Direction {
        /// To the server.
        In = "in",
        /// To the client.
        Out = "out",
        /// Both.
        InOut = "inout",
        /// The port to which the request is sent.
        RequestPort = "requestport",
        /// The port to which the reply is sent.
        ReplyPort = "replyport",
        /// The same, only in the server's function.
        ServerReplyPort = "sreplyport",
        /// The same, only in the client's function.
        UserReplyPort = "ureplyport",
        /// How long the client waits.
        WaitTime = "waittime",
        /// How long the client waits until the request is taken.
        SendTime = "sendtime",
        /// Options of the client's call of `mach_msg`.
        MessageOption = "msgoption",
        /// The sequence number of the request at its port.
        SequenceNumber = "msgseqno",
        /// The security token of the reply, at the client.
        SecurityToken = "sectoken",
        /// The security token of the request, at the server.
        ServerSecurityToken = "serversectoken",
        /// The security token of the reply, at the client.
        UserSecurityToken = "usersectoken",
        /// The audit token of request and reply.
        AuditToken = "audittoken",
        /// The audit token of the request, at the server.
        ServerAuditToken = "serveraudittoken",
        /// The audit token of the reply, at the client.
        UserAuditToken = "useraudittoken",
        /// The context of the server's port.
        ServerContextToken = "servercontexttoken",
        /// Only in the server's function.
        ServerImplementation = "serverimpl",
        /// Only in the client's function.
        UserImplementation = "userimpl",
    }
}

/// A flag of an argument or of a long form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Which.
    pub kind: FlagKind,
    /// With `[]`: the program says.
    pub variable: bool,
    /// The place.
    pub span: Span,
}

keywords! {
    /// Which flag.
    FlagKind {
        /// The sender's copy goes away.
        Dealloc = "dealloc",
        /// The sender's copy stays.
        NotDealloc = "notdealloc",
        /// The server gets out-of-line data without its being mapped.
        ServerCopy = "servercopy",
        /// With a long descriptor.
        IsLong = "islong",
        /// With a short descriptor.
        IsNotLong = "isnotlong",
        /// The caller says how much of an out array there is room for.
        CountInOut = "countinout",
        /// Without meaning.
        RetCode = "retcode",
        /// As many elements as another array.
        SameCount = "samecount",
        /// Copied physically.
        PhysicalCopy = "physicalcopy",
        /// Received over the caller's memory.
        Overwrite = "overwrite",
        /// On the stack.
        Auto = "auto",
        /// Not changed.
        Const = "const",
    }
}
