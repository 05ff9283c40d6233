//! An interface after analysis: what every back end starts from.

use crate::ast::{Direction, ImportKind};
use crate::ipc_type::IpcType;
use crate::layout::Message;
use crate::source::Span;
use crate::target::Target;
use crate::types::{Placement, Shape, Type};
use std::sync::Arc;

/// How much larger than a request's id its reply's id is.
pub const REPLY: u64 = 100;

/// A file that the C files include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Which of them.
    pub kind: ImportKind,
    /// Its name with its marks.
    pub file: String,
}

/// How long a call waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes.
    #[default]
    Forever,
    /// For the milliseconds of an expression in C.
    Fixed(String),
    /// For the milliseconds of an argument.
    Argument(String),
}

/// What holds for the routines that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Options of `mach_msg`, in C; may be empty.
    pub option: String,
    /// How long the client waits for the reply.
    pub wait: Wait,
    /// How long the client waits until the request is taken.
    pub send: Wait,
    /// The reply comes to the thread's special reply port.
    pub special_reply_port: bool,
    /// After which errors the request's rights and memory are destroyed.
    pub consume: Consume,
}

/// After which errors of sending a client destroys what the request holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consume {
    /// None: the program still has it.
    #[default]
    Never,
    /// The request was not taken in time.
    Timeout,
    /// Any.
    Any,
}

/// A whole interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// For which machine.
    pub target: Target,
    /// The subsystem's name.
    pub name: String,
    /// Whether the definition names a subsystem; those of types alone do not.
    pub has_subsystem: bool,
    /// The id of the first routine.
    pub base: u64,
    /// Clients are in the kernel.
    pub kernel_user: bool,
    /// The server is in the kernel.
    pub kernel_server: bool,
    /// What the names of the client's functions begin with.
    pub user_prefix: String,
    /// What the names of the server's functions begin with.
    pub server_prefix: String,
    /// The name of the server's function that takes any request.
    pub demux: String,
    /// The text of `rcsid`.
    pub rcs_id: Option<String>,
    /// Files that are included.
    pub imports: Vec<Import>,
    /// Types, in their order.
    pub types: Vec<Arc<Type>>,
    /// Routines by id; there may be holes.
    pub routines: Vec<Option<Routine>>,
    /// The comment in front of the subsystem.
    pub comment: String,
    pub(crate) current: Settings,
}

impl Interface {
    pub(crate) fn new(target: Target) -> Interface {
        Interface {
            target,
            name: String::new(),
            has_subsystem: false,
            base: 0,
            kernel_user: false,
            kernel_server: false,
            user_prefix: String::new(),
            server_prefix: String::new(),
            demux: String::new(),
            rcs_id: None,
            imports: Vec::new(),
            types: Vec::new(),
            routines: Vec::new(),
            comment: String::new(),
            current: Settings::default(),
        }
    }

    /// The routines, without the holes.
    pub fn present(&self) -> impl Iterator<Item = &Routine> {
        self.routines.iter().flatten()
    }

    pub(crate) fn lay_out(&mut self) {
        for routine in self.routines.iter_mut().flatten() {
            routine.request = Message::request(&self.target, routine);
            routine.reply = (!routine.simple).then(|| Message::reply(&self.target, routine));
        }
    }
}

/// What becomes of the sender's copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deallocate {
    /// It stays.
    #[default]
    No,
    /// It goes away.
    Yes,
    /// The program says.
    Variable,
}

/// A routine.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its name, without prefixes.
    pub name: String,
    /// Its name's place.
    pub span: Span,
    /// The comment in front of it.
    pub comment: String,
    /// There is no reply.
    pub simple: bool,
    /// Its place in the subsystem.
    pub index: usize,
    /// The id of its request.
    pub id: u64,
    /// Arguments, in their order.
    pub arguments: Vec<Argument>,
    /// Which argument is the port that the request goes to.
    pub request_port: usize,
    /// Which argument is the port that the reply comes to, for the client.
    pub user_reply_port: Option<usize>,
    /// Options and times.
    pub settings: Settings,
    /// The layout of the request.
    pub request: Message,
    /// The layout of the reply; simple routines have none.
    pub reply: Option<Message>,
}

impl Routine {
    /// The id of its reply.
    pub fn reply_id(&self) -> u64 {
        self.id + REPLY
    }

    /// The argument whose number of elements an argument has: itself, or with `samecount` the array
    /// before it.
    pub fn leader<'a>(&'a self, argument: &'a Argument) -> &'a Argument {
        let is_leader = |other: &&Argument| {
            other.of.is_counted() && !other.same_count && other.direction == argument.direction
        };
        let own = self.arguments.iter().position(|other| other.name == argument.name).unwrap_or(0);
        let before = || self.arguments[..own].iter().rfind(is_leader);
        if argument.same_count { before().unwrap_or(argument) } else { argument }
    }

    /// The port that the request goes to.
    pub fn port(&self) -> &Argument {
        &self.arguments[self.request_port]
    }
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its name's place.
    pub span: Span,
    /// Where it goes.
    pub direction: Direction,
    /// It has been overridden by another argument of its kind.
    pub ignored: bool,
    /// Its type.
    pub of: Arc<Type>,
    /// What becomes of the sender's copy.
    pub deallocate: Deallocate,
    /// Whether its descriptor has the long form.
    pub long: bool,
    /// The server gets out-of-line data without its being mapped.
    pub server_copy: bool,
    /// Memory of the untyped dialect is copied when it is sent.
    pub physical_copy: bool,
    /// The caller says how much of an out array there is room for.
    pub count_in_out: bool,
    /// `const`: the server does not change it.
    pub constant: bool,
    /// It has as many elements as the counted array before it.
    pub same_count: bool,
    /// The server is in the kernel.
    pub kernel_server: bool,
}

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    User,
    /// The server.
    Server,
}

/// What a parameter of a function is to its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The value.
    Value,
    /// The type of a polymorphic value.
    Type,
    /// How many elements.
    Count,
    /// Whether the sender's copy goes away.
    Deallocate,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    /// Of which argument.
    pub argument: &'a Argument,
    /// What it is to it.
    pub role: Role,
    /// Whether it is passed to the function.
    pub input: bool,
    /// Whether the function passes it back.
    pub output: bool,
}

impl Parameter<'_> {
    /// Its name.
    pub fn name(&self) -> String {
        let suffix = match self.role {
            Role::Value => "",
            Role::Type => "Poly",
            Role::Count => "Cnt",
            Role::Deallocate => "Dealloc",
        };
        format!("{}{suffix}", self.argument.name)
    }
}

impl Argument {
    /// Whether the request carries it.
    pub fn in_request(&self) -> bool {
        matches!(self.direction, Direction::In | Direction::InOut)
    }

    /// Whether the reply carries it.
    pub fn in_reply(&self) -> bool {
        matches!(self.direction, Direction::Out | Direction::InOut)
    }

    /// Whether a program's function has it: what goes in, what comes out.
    fn passes(&self, side: Side) -> Option<(bool, bool)> {
        use Direction::{
            AuditToken, In, InOut, MessageOption, Out, ReplyPort, RequestPort, SecurityToken, SendTime,
            SequenceNumber, ServerAuditToken, ServerContextToken, ServerImplementation, ServerReplyPort,
            ServerSecurityToken, UserAuditToken, UserImplementation, UserReplyPort, UserSecurityToken,
            WaitTime,
        };
        let (user, server) = (side == Side::User, side == Side::Server);
        match self.direction {
            In | RequestPort | ReplyPort => Some((true, false)),
            Out => Some((false, true)),
            InOut => Some((true, true)),
            UserReplyPort | WaitTime | SendTime | MessageOption | UserImplementation => {
                user.then_some((true, false))
            }
            ServerReplyPort | SequenceNumber | ServerImplementation | ServerSecurityToken
            | ServerAuditToken | ServerContextToken => server.then_some((true, false)),
            UserSecurityToken | UserAuditToken => user.then_some((false, true)),
            SecurityToken | AuditToken => Some((server, user)),
        }
    }

    /// The parameters for it in a program's function.
    pub fn parameters(&self, side: Side) -> Vec<Parameter<'_>> {
        let Some((input, output)) = self.passes(side) else { return Vec::new() };
        let new = |role, input, output| Parameter { argument: self, role, input, output };
        let mut all = vec![new(Role::Value, input, output)];
        // A request is sent by the client and received by the server, a reply the other way round.
        let (request, reply) = match side {
            Side::User => (self.of.sent, self.of.received),
            Side::Server => (self.of.received, self.sent_in_reply()),
        };
        let (input_type, output_type) = (input && request.is_polymorphic(), output && reply.is_polymorphic());
        if input_type || output_type {
            all.push(new(Role::Type, input_type, output_type));
        }
        if self.of.is_counted() && !self.same_count {
            // An array's room is passed, too.
            all.push(new(Role::Count, input || output, output));
        }
        let sends = match side {
            Side::User => input,
            Side::Server => output,
        };
        if self.deallocate == Deallocate::Variable && sends {
            all.push(new(Role::Deallocate, side == Side::User, side == Side::Server));
        }
        all
    }

    /// What a reply carries when it is sent: the kernel writes what the client receives.
    pub fn sent_in_reply(&self) -> IpcType {
        if self.kernel_server && self.of.received.is_port() { self.of.received } else { self.of.sent }
    }

    /// Whether it is an array that lies in the message and varies.
    pub fn is_variable_inline(&self) -> bool {
        self.of.variable && self.of.placement != Placement::OutOfLine
    }

    /// Whether it is a string of C.
    pub fn is_string(&self) -> bool {
        self.of.shape == Shape::String && self.of.placement == Placement::Inline
    }
}
