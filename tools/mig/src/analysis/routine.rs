//! Analysis of routines and their arguments.

use super::Analysis;
use crate::ast::{self, Direction, FlagKind, Name};
use crate::diagnostic::Diagnostic;
use crate::interface::{Argument, Deallocate, REPLY, Routine, Settings, Wait};
use crate::layout::Message;
use crate::source::Span;
use crate::target::Dialect;
use crate::types::{Placement, Type};
use std::sync::Arc;

impl Analysis {
    pub(super) fn routine(&mut self, simple: bool, name: &Name, arguments: &[ast::Argument], comment: &str) {
        let index = self.interface.routines.len();
        let id = self.interface.base + index as u64;
        let routine = self.arguments(name, arguments).and_then(|mut arguments| {
            let request_port = self.request_port(name, &mut arguments)?;
            self.check_reply_port(&mut arguments);
            let settings = self.settings(&mut arguments);
            if simple {
                self.check_simple(&arguments);
            }
            let is_reply_port = |argument: &Argument| {
                matches!(argument.direction, Direction::ReplyPort | Direction::UserReplyPort)
            };
            let user_reply_port = arguments.iter().position(is_reply_port);
            Some(Routine {
                name: name.text.clone(),
                span: name.span,
                comment: comment.to_owned(),
                simple,
                index,
                id,
                arguments,
                request_port,
                user_reply_port,
                settings,
                request: Message::default(),
                reply: None,
            })
        });
        if i32::try_from(id + REPLY).is_err() && self.interface.base < 1 << 31 {
            self.error(
                Diagnostic::error(name.span, format!("the id of `{}` is too large", name.text))
                    .labelled("ids have 31 bits, also those of replies, which are larger by 100"),
            );
        }
        self.interface.routines.push(routine);
    }

    fn arguments(&mut self, routine: &Name, arguments: &[ast::Argument]) -> Option<Vec<Argument>> {
        let mut analysed: Vec<Argument> = Vec::new();
        let mut failed = false;
        // The first argument without a direction is the request port, unless an argument before it
        // is.
        let explicit = arguments
            .iter()
            .position(|argument| matches!(argument.direction, Some((Direction::RequestPort, _))));
        let plain = arguments.iter().position(|argument| argument.direction.is_none());
        let implied = plain.filter(|&plain| explicit.is_none_or(|explicit| plain < explicit));
        for (index, argument) in arguments.iter().enumerate() {
            if analysed.iter().any(|other| other.name == argument.name.text) {
                self.error(
                    Diagnostic::error(
                        argument.name.span,
                        format!("a second argument `{}` of `{}`", argument.name.text, routine.text),
                    )
                    .labelled("expected another name"),
                );
                failed = true;
                continue;
            }
            let direction = match argument.direction {
                Some((direction, span)) => {
                    self.check_direction(direction, span);
                    direction
                }
                None if implied == Some(index) => Direction::RequestPort,
                None => Direction::In,
            };
            match self.argument(argument, direction) {
                Some(argument) => {
                    self.check_same_count(&analysed, &argument);
                    analysed.push(argument);
                }
                None => failed = true,
            }
        }
        (!failed).then_some(analysed)
    }

    fn check_direction(&mut self, direction: Direction, span: Span) {
        use Direction::{
            In, InOut, MessageOption, Out, ReplyPort, RequestPort, SequenceNumber, ServerReplyPort,
            UserReplyPort, WaitTime,
        };
        let common = matches!(
            direction,
            In | Out
                | InOut
                | RequestPort
                | ReplyPort
                | ServerReplyPort
                | UserReplyPort
                | WaitTime
                | MessageOption
                | SequenceNumber
        );
        if !common {
            self.only_in(Dialect::Untyped, &format!("`{}`", direction.keyword()), span);
        }
    }

    fn argument(&mut self, argument: &ast::Argument, direction: Direction) -> Option<Argument> {
        let of = match &argument.expression {
            Some(expression) => Arc::new(self.expression(&argument.type_name.text, expression)?),
            None => self.named(&argument.type_name)?,
        };
        let mut analysed = Argument {
            name: argument.name.text.clone(),
            span: argument.name.span,
            direction,
            ignored: false,
            deallocate: if of.deallocate == Some(true) { Deallocate::Yes } else { Deallocate::No },
            long: self.is_long(&of),
            of,
            server_copy: false,
            physical_copy: false,
            count_in_out: false,
            constant: false,
            same_count: false,
            kernel_server: self.interface.kernel_server,
        };
        for flag in &argument.flags {
            self.flag(&mut analysed, flag);
        }
        self.check_argument(&mut analysed);
        Some(analysed)
    }

    /// Whether the descriptor of an argument of this type has the long form if no flag says so.
    fn is_long(&self, of: &Type) -> bool {
        let unknown = of.variable && of.placement != Placement::Inline;
        of.long.unwrap_or_else(|| unknown || self.target.needs_long(of.bits, of.count))
    }

    fn flag(&mut self, argument: &mut Argument, flag: &ast::Flag) {
        use FlagKind::{
            Auto, Const, CountInOut, Dealloc, IsLong, IsNotLong, NotDealloc, Overwrite, PhysicalCopy,
            RetCode, SameCount, ServerCopy,
        };
        let keyword = flag.kind.keyword();
        if flag.variable && flag.kind != Dealloc {
            self.error(
                Diagnostic::error(flag.span, format!("`{keyword}[]`"))
                    .labelled("only `dealloc` can be followed by `[]`"),
            );
        }
        match flag.kind {
            ServerCopy | IsLong | IsNotLong => {
                self.only_in(Dialect::Typed, &format!("`{keyword}`"), flag.span);
            }
            SameCount | PhysicalCopy | Overwrite | Auto | Const => {
                self.only_in(Dialect::Untyped, &format!("`{keyword}`"), flag.span);
            }
            Dealloc | NotDealloc | CountInOut | RetCode => {}
        }
        let out_of_line = argument.of.placement != Placement::Inline;
        let meaningless = match flag.kind {
            ServerCopy => !out_of_line || argument.of.sent.is_port(),
            CountInOut => !argument.is_variable_inline() || !argument.in_reply() || argument.is_string(),
            Dealloc => !out_of_line && !argument.of.sent.is_port() && !argument.of.sent.is_polymorphic(),
            _ => false,
        };
        if meaningless {
            self.diagnostics.push(
                Diagnostic::warning(flag.span, format!("`{keyword}` of `{}`", argument.name))
                    .labelled("it has no meaning for this argument"),
            );
        }
        match flag.kind {
            Dealloc if flag.variable => argument.deallocate = Deallocate::Variable,
            Dealloc => argument.deallocate = Deallocate::Yes,
            NotDealloc => argument.deallocate = Deallocate::No,
            ServerCopy => argument.server_copy = !meaningless,
            CountInOut => argument.count_in_out = !meaningless,
            IsLong => argument.long = true,
            IsNotLong => {
                if self.target.needs_long(argument.of.bits, argument.of.count) {
                    self.error(
                        Diagnostic::error(flag.span, format!("`{}` needs a long descriptor", argument.name))
                            .labelled("a short one has 8 bits for the size and 12 for the number"),
                    );
                }
                argument.long = false;
            }
            Const => argument.constant = true,
            SameCount => argument.same_count = argument.of.variable,
            PhysicalCopy => argument.physical_copy = true,
            RetCode | Overwrite | Auto => {}
        }
    }

    fn check_argument(&mut self, argument: &mut Argument) {
        use Direction::{MessageOption, ReplyPort, RequestPort, ServerReplyPort, UserReplyPort};
        let of = Arc::clone(&argument.of);
        let is_port = of.sent.is_port() || of.sent.is_polymorphic() || of.sent.number == 15;
        let is_one = of.count == 1 && of.placement == Placement::Inline && !of.variable;
        let wrong = match argument.direction {
            RequestPort | ReplyPort | ServerReplyPort | UserReplyPort if !is_port || !is_one => {
                Some("a port")
            }
            Direction::WaitTime | Direction::SendTime | MessageOption | Direction::SequenceNumber
                if !is_one || of.bits != 32 =>
            {
                Some("one integer of 32 bits")
            }
            _ => None,
        };
        if let Some(expected) = wrong {
            let direction = argument.direction.keyword();
            self.error(
                Diagnostic::error(
                    argument.span,
                    format!("`{}` is the {direction} of its routine", argument.name),
                )
                .labelled(format!("expected {expected} as its type, not `{}`", of.name)),
            );
        }
        let typed = self.target.dialect == Dialect::Typed;
        if typed && argument.direction == Direction::InOut && argument.is_variable_inline() {
            self.error(
                Diagnostic::error(
                    argument.span,
                    format!("`{}` is an array of varying size, in the message, both ways", argument.name),
                )
                .labelled("expected `in` or `out`, or an array out of line"),
            );
        }
    }

    /// Refuses `samecount` unless a counted array of the same direction stands before the argument.
    fn check_same_count(&mut self, before: &[Argument], argument: &Argument) {
        let is_leader = |other: &Argument| {
            other.of.is_counted() && !other.same_count && other.direction == argument.direction
        };
        if argument.same_count && !before.iter().any(is_leader) {
            let error = Diagnostic::error(argument.span, format!("`samecount` of `{}`", argument.name));
            self.error(error.labelled("expected a counted array of the same direction before it"));
        }
    }

    /// Finds the argument that is the request port.
    fn request_port(&mut self, name: &Name, arguments: &mut [Argument]) -> Option<usize> {
        let is_port = |argument: &&mut Argument| argument.direction == Direction::RequestPort;
        let Some(port) = arguments.iter().rposition(|argument| argument.direction == Direction::RequestPort)
        else {
            self.error(
                Diagnostic::error(name.span, format!("`{}` has no port to send to", name.text))
                    .labelled("expected an argument without a direction, or a `requestport`"),
            );
            return None;
        };
        let overridden: Vec<(Span, String)> = arguments[..port]
            .iter_mut()
            .filter(is_port)
            .map(|argument| {
                argument.ignored = true;
                (argument.span, argument.name.clone())
            })
            .collect();
        for (span, name) in overridden {
            self.diagnostics.push(
                Diagnostic::warning(span, format!("`{name}` is not sent"))
                    .labelled("another argument is the `requestport`"),
            );
        }
        Some(port)
    }

    fn check_reply_port(&mut self, arguments: &mut [Argument]) {
        use Direction::{ReplyPort, ServerReplyPort, UserReplyPort};
        for (first, second) in [(ReplyPort, UserReplyPort), (ReplyPort, ServerReplyPort)] {
            let ports = arguments
                .iter()
                .filter(|argument| argument.direction == first || argument.direction == second);
            if let Some(span) = ports.map(|argument| argument.span).nth(1) {
                self.error(
                    Diagnostic::error(span, "a second reply port")
                        .labelled("a routine has one for each side"),
                );
                return;
            }
        }
    }

    /// The options and times of a routine: an argument takes precedence over a statement such as
    /// `waittime`.
    fn settings(&mut self, arguments: &mut [Argument]) -> Settings {
        let mut settings = self.interface.current.clone();
        for argument in arguments {
            match argument.direction {
                Direction::WaitTime => settings.wait = Wait::Argument(argument.name.clone()),
                Direction::SendTime => settings.send = Wait::Argument(argument.name.clone()),
                Direction::MessageOption => settings.option.clone_from(&argument.name),
                _ => {}
            }
        }
        settings
    }

    fn check_simple(&mut self, arguments: &[Argument]) {
        for argument in arguments {
            let name = &argument.name;
            if argument.in_reply() {
                self.error(
                    Diagnostic::error(argument.span, format!("`{name}` comes back from a simple routine"))
                        .labelled("a simple routine has no reply: expected `in`, or `routine`"),
                );
            }
        }
    }
}
