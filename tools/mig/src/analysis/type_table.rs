//! The types that a definition can name, and the analysis of type expressions.

use super::Analysis;
use crate::ast::{FlagKind, Member, Name, Number, Specification, Translation, TypeExpression};
use crate::diagnostic::Diagnostic;
use crate::ipc_type::{Bits, IpcType};
use crate::source::Span;
use crate::target::{Dialect, Target};
use crate::types::{Placement, Shape, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// Types by name.
pub(crate) struct TypeTable {
    named: HashMap<String, Arc<Type>>,
    /// Names of the types that the definition itself defines, in the order of definition.
    order: Vec<String>,
}

/// Bytes that an array without a bound may occupy in a message; a larger one is sent out of line.
const UNBOUNDED: u64 = 2048;

/// The most bytes of a type. Sums of the sizes of a message cannot overflow below this limit.
const LARGEST: u64 = 1 << 28;

impl TypeTable {
    /// A table of the types that exist without a definition, such as `int` in the typed dialect.
    pub(crate) fn new(target: &Target) -> TypeTable {
        let mut table = TypeTable { named: HashMap::new(), order: Vec::new() };
        if target.dialect == Dialect::Untyped {
            return table;
        }
        let address = if target.pointer == 8 { "INTEGER_64" } else { "INTEGER_32" };
        for (name, kind) in [
            ("char", "CHAR"),
            ("short", "INTEGER_16"),
            ("int", "INTEGER_32"),
            ("uintptr_t", address),
            ("intptr_t", address),
        ] {
            let of = IpcType::by_name(&format!("MACH_MSG_TYPE_{kind}"));
            if let Some((sent, received)) = of {
                let bits = target.bits(sent.bits).unwrap_or(0);
                let of = Type::primitive(sent, received, bits).renamed(name);
                table.named.insert(name.to_owned(), Arc::new(of));
            }
        }
        table
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Type>> {
        self.named.get(name)
    }

    /// The types that the definition defines, in the order of definition.
    pub(crate) fn in_order(&self) -> Vec<Arc<Type>> {
        self.order.iter().filter_map(|name| self.named.get(name)).cloned().collect()
    }
}

impl Analysis {
    pub(super) fn define_type(&mut self, name: &Name, expression: &TypeExpression) {
        let Some(defined) = self.expression(&name.text, expression) else { return };
        if let Some(other) = self.types.get(&name.text) {
            let defined_here = self.types.order.contains(&name.text);
            // CMU's definitions define `int` and similar types, which are built in here as in GNU's
            // compiler: an identical definition of a built-in type is no error.
            if !defined_here && **other == defined {
                return;
            }
            let message = format!("a second definition of type `{}`", name.text);
            let found = match self.target.dialect {
                Dialect::Typed => Diagnostic::error(name.span, message),
                Dialect::Untyped => Diagnostic::warning(name.span, message),
            };
            let label = if defined_here { "it is defined above" } else { "it exists already" };
            self.error(found.labelled(label));
        } else {
            self.types.order.push(name.text.clone());
        }
        self.types.named.insert(name.text.clone(), Arc::new(defined));
    }

    /// The type that an expression describes, named `name`. Returns none after reporting an error.
    pub(super) fn expression(&mut self, name: &str, expression: &TypeExpression) -> Option<Type> {
        let plain = self.specification(&expression.specification)?;
        let mut of = plain.renamed(name);
        if self.target.dialect == Dialect::Untyped && of.placement == Placement::Either {
            // Untyped messages carry an array without a bound by a descriptor, however small the
            // array is.
            (of.placement, of.count) = (Placement::OutOfLine, 0);
        }
        for translation in &expression.translations {
            self.translate(&mut of, translation, expression.span);
        }
        self.name_kernel_ports(&mut of);
        Some(of)
    }

    /// Replaces the C type `mach_port_t` by a pointer to the port for a side that is in the kernel.
    fn name_kernel_ports(&self, of: &mut Type) {
        if self.target.dialect == Dialect::Untyped {
            return;
        }
        let is_port = of.sent.is_port() || of.sent.is_polymorphic();
        let (user, server) = (self.interface.kernel_user, self.interface.kernel_server);
        for (kernel, name) in [(user, &mut of.user), (server, &mut of.server), (server, &mut of.message)] {
            if kernel && is_port && name == "mach_port_t" {
                "ipc_port_t".clone_into(name);
            }
        }
    }

    fn translate(&mut self, of: &mut Type, translation: &Translation, span: Span) {
        let conflict = match translation {
            Translation::In { to, function, from } => {
                of.server.clone_from(&to.text);
                of.message.clone_from(&from.text);
                of.functions.into.replace(function.text.clone()).is_some()
            }
            Translation::Out { to, function, from } => {
                of.message.clone_from(&to.text);
                of.server.clone_from(&from.text);
                of.functions.out.replace(function.text.clone()).is_some()
            }
            Translation::Payload { to, function } => {
                self.only_in(Dialect::Typed, "`intranpayload`", function.span);
                of.server.clone_from(&to.text);
                of.functions.payload.replace(function.text.clone()).is_some()
            }
            Translation::Destructor { function, of: freed } => {
                of.server.clone_from(&freed.text);
                of.functions.destructor.replace(function.text.clone()).is_some()
            }
            Translation::CType(name) => {
                of.user.clone_from(&name.text);
                // A server's type that an earlier translation has set takes precedence over
                // `ctype`.
                if of.server == of.name {
                    of.server.clone_from(&name.text);
                }
                if of.message == of.name {
                    of.message.clone_from(&name.text);
                }
                false
            }
            Translation::UserType(name) => {
                of.user.clone_from(&name.text);
                false
            }
            Translation::ServerType(name) => {
                of.server.clone_from(&name.text);
                if of.message == of.name {
                    of.message.clone_from(&name.text);
                }
                false
            }
        };
        if conflict {
            self.error(Diagnostic::error(span, "the same translation twice").labelled("expected it once"));
        }
    }

    fn specification(&mut self, specification: &Specification) -> Option<Type> {
        match specification {
            Specification::Ipc { sent, received, long, span } => {
                self.primitive(*sent, *received, long.as_ref(), *span)
            }
            Specification::Named(name) => self.named(name).map(|of| Type::clone(&of)),
            Specification::VariableArray { maximum, of } => self.variable_array(*maximum, of),
            Specification::Array { count, of } => self.array(*count, of, Shape::Array),
            Specification::StructArray { count, of } => self.array(*count, of, Shape::Struct),
            Specification::Pointer(of, span) => self.pointer(of, *span),
            Specification::Struct { members, span } => self.structure(members, *span),
            Specification::String { size, varying } => self.string(*size, *varying),
            Specification::Native(keyword, phrases) => self.native(keyword, phrases),
        }
    }

    /// Looks up a type by name; reports an error if there is none.
    pub(super) fn named(&mut self, name: &Name) -> Option<Arc<Type>> {
        let found = self.types.get(&name.text).cloned();
        if found.is_none() {
            self.error(
                Diagnostic::error(name.span, format!("type `{}` is not defined", name.text))
                    .labelled("expected a type that is defined above"),
            );
        }
        found
    }

    fn primitive(
        &mut self,
        sent: IpcType,
        received: IpcType,
        long: Option<&(Number, Vec<crate::ast::Flag>)>,
        span: Span,
    ) -> Option<Type> {
        let implied = self.target.bits(sent.bits);
        let Some((size, flags)) = long else {
            let Some(bits) = implied.or_else(|| self.target.bits(received.bits)) else {
                let shown = sent.in_c();
                self.error(
                    Diagnostic::error(span, format!("`{shown}` does not say how large an element is"))
                        .labelled(format!("expected `({shown}, bits)`")),
                );
                return None;
            };
            return Some(Type::primitive(sent, received, bits));
        };
        self.only_in(Dialect::Typed, "types in brackets", span);
        self.sized(size.value.div_ceil(8), size.span)?;
        let bits = u32::try_from(size.value).unwrap_or(u32::MAX);
        let known = matches!(sent.bits, Bits::Known(1..)) || sent.bits == Bits::Port;
        if let Some(implied) = implied.filter(|&implied| known && implied != bits) {
            self.diagnostics.push(
                Diagnostic::warning(size.span, format!("an element of {bits} bits"))
                    .labelled(format!("`{}` has {implied}", sent.in_c())),
            );
        }
        let mut of = Type::primitive(sent, received, bits);
        if sent.number == 12 {
            // Type number 12 is CMU's string, which is one element as large as the whole string.
            of.shape = Shape::String;
            of.alignment = 1;
        }
        for flag in flags {
            match flag.kind {
                FlagKind::IsLong => of.long = Some(true),
                FlagKind::IsNotLong => of.long = Some(false),
                FlagKind::Dealloc => of.deallocate = Some(true),
                FlagKind::NotDealloc => of.deallocate = Some(false),
                other => {
                    let message = format!("`{}` is not a flag of a type", other.keyword());
                    self.error(
                        Diagnostic::error(flag.span, message)
                            .labelled("expected `islong`, `isnotlong`, `dealloc` or `notdealloc`"),
                    );
                }
            }
        }
        Some(of)
    }

    /// Returns `bytes`, or reports an error if no message can hold that many.
    fn sized(&mut self, bytes: u64, span: Span) -> Option<u64> {
        if bytes > LARGEST {
            self.error(
                Diagnostic::error(span, "this is too large for a message")
                    .labelled(format!("expected at most {LARGEST} bytes")),
            );
            return None;
        }
        Some(bytes)
    }

    /// The type of an array's elements. Reports an error unless elements have a fixed size and lie
    /// in the message.
    fn element(&mut self, of: &Specification, span: Span) -> Option<Type> {
        let of = self.specification(of)?;
        if of.variable || of.placement != Placement::Inline {
            self.error(
                Diagnostic::error(span, "an array of elements of varying size or out of line")
                    .labelled("expected elements of a fixed size"),
            );
            return None;
        }
        Some(of)
    }

    fn array(&mut self, count: Number, of: &Specification, shape: Shape) -> Option<Type> {
        if count.value == 0 {
            self.error(Diagnostic::error(count.span, "no elements").labelled("expected at least 1"));
            return None;
        }
        let element = self.element(of, count.span)?;
        let elements = element.count.checked_mul(count.value).filter(|&count| count <= LARGEST);
        self.sized(elements.map_or(u64::MAX, |count| element.bytes_of(count)), count.span)?;
        let count = elements?;
        Some(Type { count, shape, element: Some(Arc::new(element.clone())), ..element })
    }

    fn variable_array(&mut self, maximum: Option<Number>, of: &Specification) -> Option<Type> {
        let span = maximum.map_or_else(|| span_of(of), |maximum| maximum.span);
        let element = self.element(of, span)?;
        let (placement, count) = match maximum {
            Some(maximum) => {
                let count = element.count.checked_mul(maximum.value).filter(|&count| count <= LARGEST);
                self.sized(count.map_or(u64::MAX, |count| element.bytes_of(count)), span)?;
                (Placement::Inline, count?)
            }
            None => {
                let bytes = element.bytes_of(element.count).max(1);
                (Placement::Either, UNBOUNDED / bytes * element.count)
            }
        };
        let shape = Shape::Array;
        let element_type = Some(Arc::new(element.clone()));
        Some(Type { count, shape, placement, variable: true, element: element_type, ..element })
    }

    fn pointer(&mut self, of: &Specification, span: Span) -> Option<Type> {
        let of = self.specification(of)?;
        if of.placement == Placement::OutOfLine {
            self.error(
                Diagnostic::error(span, "a pointer to what is out of line already")
                    .labelled("expected one `^`"),
            );
            return None;
        }
        let count = if of.variable { 0 } else { of.count };
        Some(Type { placement: Placement::OutOfLine, count, ..of })
    }

    fn structure(&mut self, members: &[Member], span: Span) -> Option<Type> {
        self.only_in(Dialect::Typed, "`struct { }`", span);
        let (mut size, mut alignment) = (0u64, 1u64);
        for member in members {
            let of = self.named(&member.of)?;
            if of.variable || of.placement != Placement::Inline {
                self.error(
                    Diagnostic::error(member.of.span, "a member of varying size or out of line")
                        .labelled("expected a type of a fixed size"),
                );
                return None;
            }
            let own = of.alignment.min(self.target.alignment);
            let count = member.count.map_or(1, |count| count.value);
            let bytes = of.bytes_of(of.count).saturating_mul(count);
            let bytes = self.sized(bytes, member.name.span)?;
            size = self.sized(size.next_multiple_of(own) + bytes, member.name.span)?;
            alignment = alignment.max(own);
        }
        if size == 0 {
            self.error(Diagnostic::error(span, "a struct without members").labelled("expected a member"));
            return None;
        }
        let name = match alignment {
            1 => "MACH_MSG_TYPE_BYTE",
            2 => "MACH_MSG_TYPE_INTEGER_16",
            4 => "MACH_MSG_TYPE_INTEGER_32",
            _ => "MACH_MSG_TYPE_INTEGER_64",
        };
        let (sent, received) = IpcType::by_name(name)?;
        let of = Type::primitive(sent, received, alignment as u32 * 8);
        let count = size.div_ceil(alignment);
        Some(Type { count, shape: Shape::Struct, alignment, ..of })
    }

    fn string(&mut self, size: Number, varying: bool) -> Option<Type> {
        self.sized(size.value, size.span)?;
        if size.value == 0 {
            self.error(
                Diagnostic::error(size.span, "a string without room for its end")
                    .labelled("expected at least 1"),
            );
            return None;
        }
        let (sent, received) = IpcType::by_name("MACH_MSG_TYPE_STRING_C")?;
        let of = Type::primitive(sent, received, 8);
        Some(Type { count: size.value, variable: varying, shape: Shape::String, ..of })
    }

    fn native(&mut self, keyword: &Name, phrases: &[Name]) -> Option<Type> {
        self.only_in(Dialect::Untyped, &format!("`{}`", keyword.text), keyword.span);
        let (sent, received) = IpcType::by_name("MACH_MSG_TYPE_BYTE")?;
        let words: Vec<&str> = phrases.iter().map(|phrase| phrase.text.as_str()).collect();
        let native = Some(format!("{}({})", keyword.text, words.join(", ")));
        let bits = u32::try_from(self.target.pointer * 8).ok()?;
        Some(Type { native, ..Type::primitive(sent, received, bits) })
    }
}

/// The place in the source of a type specification.
fn span_of(of: &Specification) -> Span {
    match of {
        Specification::Ipc { span, .. }
        | Specification::Pointer(_, span)
        | Specification::Struct { span, .. } => *span,
        Specification::Named(name) | Specification::Native(name, _) => name.span,
        Specification::VariableArray { maximum: Some(number), .. }
        | Specification::Array { count: number, .. }
        | Specification::StructArray { count: number, .. }
        | Specification::String { size: number, .. } => number.span,
        Specification::VariableArray { of, .. } => span_of(of),
    }
}
