//! An interface after analysis, which is the input of every back end.

use crate::ast::{Direction, ImportKind};
use crate::ipc_type::IpcType;
use crate::layout::Message;
use crate::source::Span;
use crate::target::Target;
use crate::types::{Placement, Shape, Type};
use std::sync::Arc;

/// The difference between the id of a reply and the id of its request.
pub const REPLY: u64 = 100;

/// A file that generated C files include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Which of the generated files include the file.
    pub kind: ImportKind,
    /// The file's name with its quotation marks or brackets.
    pub file: String,
}

/// The timeout of a call's request or reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// No timeout.
    #[default]
    Forever,
    /// The milliseconds that an expression in C gives.
    Fixed(String),
    /// The milliseconds that an argument of the routine gives.
    Argument(String),
}

/// Options of calls, which a statement sets for all routines after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Options of `mach_msg`, in C; may be empty.
    pub option: String,
    /// The timeout of receiving the reply.
    pub wait: Wait,
    /// The timeout of sending the request.
    pub send: Wait,
    /// Whether the reply comes to the thread's special reply port.
    pub special_reply_port: bool,
    /// After which errors of sending the client destroys the request's rights and memory.
    pub consume: Consume,
}

/// After which errors of sending a client destroys the rights and memory in the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consume {
    /// After no error: the caller keeps its rights and memory.
    #[default]
    Never,
    /// After a timeout, when the server did not take the request.
    Timeout,
    /// After any error of sending.
    Any,
}

/// An interface: a subsystem with its types and routines.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The machine and dialect of the messages.
    pub target: Target,
    /// The subsystem's name.
    pub name: String,
    /// Whether the definition names a subsystem; a definition of types alone does not.
    pub has_subsystem: bool,
    /// The id of the first routine.
    pub base: u64,
    /// Whether clients are in the kernel.
    pub kernel_user: bool,
    /// Whether the server is in the kernel.
    pub kernel_server: bool,
    /// The prefix of the names of the client's functions.
    pub user_prefix: String,
    /// The prefix of the names of the server's functions.
    pub server_prefix: String,
    /// The name of the server's demultiplexer, the function that handles any request.
    pub demux: String,
    /// The text of `rcsid`, which the C files hold as a string.
    pub rcs_id: Option<String>,
    /// Files that generated C files include.
    pub imports: Vec<Import>,
    /// Types that the definition defines, in the order of definition.
    pub types: Vec<Arc<Type>>,
    /// Routines by index, which is the id less `base`; `skip` leaves indices without a routine.
    pub routines: Vec<Option<Routine>>,
    /// The comment in front of the `subsystem` statement.
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

    /// The routines, without skipped ids.
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

/// Whether sending takes the right or memory from the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deallocate {
    /// The sender keeps it.
    #[default]
    No,
    /// It is taken from the sender.
    Yes,
    /// The program decides in each call.
    Variable,
}

/// A routine of the subsystem, with the layouts of its messages.
#[derive(Clone, Debug)]
pub struct Routine {
    /// The routine's name, without prefixes.
    pub name: String,
    /// The place of the name in the source.
    pub span: Span,
    /// The comment in front of the routine.
    pub comment: String,
    /// Whether the routine has no reply.
    pub simple: bool,
    /// The routine's index in the subsystem: `id` less the subsystem's base.
    pub index: usize,
    /// The id of the request.
    pub id: u64,
    /// The arguments, in the order of the definition.
    pub arguments: Vec<Argument>,
    /// The index of the argument that is the port to which the request is sent.
    pub request_port: usize,
    /// The index of the argument that is the client's port for the reply, if there is one.
    pub user_reply_port: Option<usize>,
    /// Options and timeouts of the call.
    pub settings: Settings,
    /// The layout of the request.
    pub request: Message,
    /// The layout of the reply; simple routines have none.
    pub reply: Option<Message>,
}

impl Routine {
    /// The id of the reply.
    pub fn reply_id(&self) -> u64 {
        self.id + REPLY
    }

    /// The argument that counts the elements of `argument`: `argument` itself, or with `samecount`
    /// the counted array before it.
    pub fn leader<'a>(&'a self, argument: &'a Argument) -> &'a Argument {
        let is_leader = |other: &&Argument| {
            other.of.is_counted() && !other.same_count && other.direction == argument.direction
        };
        let own = self.arguments.iter().position(|other| other.name == argument.name).unwrap_or(0);
        let before = || self.arguments[..own].iter().rfind(is_leader);
        if argument.same_count { before().unwrap_or(argument) } else { argument }
    }

    /// The argument that is the port to which the request is sent.
    pub fn port(&self) -> &Argument {
        &self.arguments[self.request_port]
    }
}

/// An argument of a routine.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The argument's name.
    pub name: String,
    /// The place of the name in the source.
    pub span: Span,
    /// The argument's direction or role.
    pub direction: Direction,
    /// Whether a later argument of the same role has replaced this one.
    pub ignored: bool,
    /// The argument's type.
    pub of: Arc<Type>,
    /// Whether sending takes the right or memory from the sender.
    pub deallocate: Deallocate,
    /// Whether the argument's descriptor has the long form.
    pub long: bool,
    /// The server receives out-of-line data as a copy object, which is not mapped.
    pub server_copy: bool,
    /// The kernel physically copies memory when an untyped message is sent.
    pub physical_copy: bool,
    /// Whether the caller passes the room that it has for an `out` array.
    pub count_in_out: bool,
    /// `const`: the server's function does not change the value.
    pub constant: bool,
    /// Whether the array has as many elements as the counted array before it.
    pub same_count: bool,
    /// Whether the server is in the kernel.
    pub kernel_server: bool,
}

/// The client or the server of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client, which Mach calls the user of an interface.
    User,
    /// The server of an interface.
    Server,
}

/// What a parameter of a function passes for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The argument's value.
    Value,
    /// The type of a polymorphic right.
    Type,
    /// The number of elements.
    Count,
    /// Whether sending takes the right or memory from the sender.
    Deallocate,
}

/// A parameter of a client's or a server's function in C.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    /// The argument to which the parameter belongs.
    pub argument: &'a Argument,
    /// What the parameter passes for the argument.
    pub role: Role,
    /// Whether the caller of the function gives a value.
    pub input: bool,
    /// Whether the function returns a value through the parameter.
    pub output: bool,
}

impl Parameter<'_> {
    /// The parameter's name.
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
    /// Whether the request carries the argument.
    pub fn in_request(&self) -> bool {
        matches!(self.direction, Direction::In | Direction::InOut)
    }

    /// Whether the reply carries the argument.
    pub fn in_reply(&self) -> bool {
        matches!(self.direction, Direction::Out | Direction::InOut)
    }

    /// How the argument is passed to the function of a side: whether in, whether out. None if the
    /// function has no such parameter.
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

    /// The parameters that the function of a side has for the argument.
    pub fn parameters(&self, side: Side) -> Vec<Parameter<'_>> {
        let Some((input, output)) = self.passes(side) else { return Vec::new() };
        let new = |role, input, output| Parameter { argument: self, role, input, output };
        let mut all = vec![new(Role::Value, input, output)];
        // The type that a program gives is that of a sent message; the type that it gets is that of
        // a received one. Clients send requests, servers send replies.
        let (request, reply) = match side {
            Side::User => (self.of.sent, self.of.received),
            Side::Server => (self.of.received, self.sent_in_reply()),
        };
        let (input_type, output_type) = (input && request.is_polymorphic(), output && reply.is_polymorphic());
        if input_type || output_type {
            all.push(new(Role::Type, input_type, output_type));
        }
        if self.of.is_counted() && !self.same_count {
            // The count of an `out` array is an input, too: the room that the caller has.
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

    /// The primitive type in a sent reply. A server in the kernel gives the type of right that the
    /// client receives.
    pub fn sent_in_reply(&self) -> IpcType {
        if self.kernel_server && self.of.received.is_port() { self.of.received } else { self.of.sent }
    }

    /// Whether the value is an array of varying size that the message itself may hold.
    pub fn is_variable_inline(&self) -> bool {
        self.of.variable && self.of.placement != Placement::OutOfLine
    }

    /// Whether the value is a C string in the message.
    pub fn is_string(&self) -> bool {
        self.of.shape == Shape::String && self.of.placement == Placement::Inline
    }
}
