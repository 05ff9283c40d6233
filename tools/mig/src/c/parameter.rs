//! C parameters of the functions of clients and servers.

use crate::interface::{Argument, Interface, Parameter, Role, Routine, Side};
use crate::target::Dialect;
use crate::types::{Placement, Shape, Type};

/// The C type of a value in the program of a side.
pub(super) fn type_of(of: &Type, side: Side) -> &str {
    match side {
        Side::User => &of.user,
        Side::Server => &of.server,
    }
}

/// Whether C passes a value of this type as an address without `&`: it is an array or a string.
pub(super) fn by_address(of: &Type) -> bool {
    of.placement == Placement::Inline && matches!(of.shape, Shape::Array | Shape::String)
}

/// The C declaration of a parameter.
fn declaration(interface: &Interface, parameter: &Parameter<'_>, side: Side) -> String {
    let (name, star) = (parameter.name(), if parameter.output { "*" } else { "" });
    let of = &parameter.argument.of;
    let c_type = match parameter.role {
        Role::Value => type_of(of, side),
        Role::Type => "mach_msg_type_name_t",
        Role::Count => "mach_msg_type_number_t",
        Role::Deallocate => "boolean_t",
    };
    if parameter.role != Role::Value || (!by_address(of) && of.placement != Placement::Either) {
        return format!("{c_type} {star}{name}");
    }
    if parameter.output {
        return if by_address(of) { format!("{c_type} {name}") } else { format!("{c_type} *{name}") };
    }
    if interface.target.dialect == Dialect::Untyped {
        // The untyped dialect declares a parameter constant only if the definition says `const`.
        let constant = if parameter.argument.constant { "const " } else { "" };
        return format!("{constant}{c_type} {name}");
    }
    match of.shape {
        Shape::String => format!("const_{c_type} {name}"),
        _ if of.placement == Placement::Either => format!("const_{c_type} {name}"),
        _ => format!("const {c_type} {name}"),
    }
}

/// The C parameters of a routine's function in the program of a side.
pub(super) fn parameters(interface: &Interface, routine: &Routine, side: Side) -> Vec<String> {
    let all = routine.arguments.iter().flat_map(|argument| argument.parameters(side));
    let declared: Vec<String> = all.map(|parameter| declaration(interface, &parameter, side)).collect();
    if declared.is_empty() { vec!["void".to_owned()] } else { declared }
}

/// The C type of an array's elements, or of a value that is not an array, for copying.
pub(super) fn element(of: &Type, side: Side) -> &str {
    let of = of.element.as_deref().filter(|element| !element.user.is_empty()).unwrap_or(of);
    match side {
        Side::User => &of.user,
        Side::Server => &of.message,
    }
}

/// Whether an element is larger in a message than in the program. This holds for rights in 64-bit
/// messages, and for arrays of rights with one descriptor for each right.
pub(super) fn is_widened(interface: &Interface, of: &Type) -> bool {
    let is_right = of.sent.is_port() || of.sent.is_polymorphic();
    let is_wide = match interface.target.dialect {
        Dialect::Typed => interface.target.port != 4,
        Dialect::Untyped => of.shape != Shape::Scalar,
    };
    is_right && is_wide && of.placement != Placement::OutOfLine
}

/// The C text that divides by a number; empty for 1.
pub(super) fn divided(by: u64) -> String {
    if by == 1 { String::new() } else { format!(" / {by}") }
}

/// The number of bytes of `count` elements: an expression in C.
pub(super) fn bytes(of: &Type, count: &str) -> String {
    let bits = u64::from(of.bits) * of.multiplier();
    match bits {
        8 => count.to_owned(),
        bits if bits % 8 == 0 => format!("{} * {count}", bits / 8),
        bits => format!("({bits} * {count} + 7) / 8"),
    }
}

/// The number that a descriptor gives for `count` elements of the program: an expression in C.
pub(super) fn number(of: &Type, count: &str) -> String {
    match of.multiplier() {
        1 => count.to_owned(),
        multiplier => format!("{multiplier} * {count}"),
    }
}

/// The largest number of elements, as the program counts them.
pub(super) fn most(of: &Type) -> u64 {
    of.count / of.multiplier().max(1)
}

/// The parameter with a role for an argument, if the function of that side has one.
pub(super) fn find(argument: &Argument, side: Side, role: Role) -> Option<Parameter<'_>> {
    argument.parameters(side).into_iter().find(|parameter| parameter.role == role)
}
