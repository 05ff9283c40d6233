//! Parameters of C functions.

use crate::interface::{Argument, Interface, Parameter, Role, Routine, Side};
use crate::target::Dialect;
use crate::types::{Placement, Shape, Type};

/// The C type of a value in a program.
pub(super) fn type_of(of: &Type, side: Side) -> &str {
    match side {
        Side::User => &of.user,
        Side::Server => &of.server,
    }
}

/// Whether C passes the address of the value by itself.
pub(super) fn by_address(of: &Type) -> bool {
    of.placement == Placement::Inline && matches!(of.shape, Shape::Array | Shape::String)
}

/// A parameter as C declares it.
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
        // There the definition says what is constant.
        let constant = if parameter.argument.constant { "const " } else { "" };
        return format!("{constant}{c_type} {name}");
    }
    match of.shape {
        Shape::String => format!("const_{c_type} {name}"),
        _ if of.placement == Placement::Either => format!("const_{c_type} {name}"),
        _ => format!("const {c_type} {name}"),
    }
}

/// The parameters of a routine's function in a program.
pub(super) fn parameters(interface: &Interface, routine: &Routine, side: Side) -> Vec<String> {
    let all = routine.arguments.iter().flat_map(|argument| argument.parameters(side));
    let declared: Vec<String> = all.map(|parameter| declaration(interface, &parameter, side)).collect();
    if declared.is_empty() { vec!["void".to_owned()] } else { declared }
}

/// The C type of an element of an array, or of a value that is none, as it is copied.
pub(super) fn element(of: &Type, side: Side) -> &str {
    let of = of.element.as_deref().filter(|element| !element.user.is_empty()).unwrap_or(of);
    match side {
        Side::User => &of.user,
        Side::Server => &of.message,
    }
}

/// Whether a message has more bytes for each element than the program: rights in 64-bit messages,
/// and arrays of rights that have a descriptor each.
pub(super) fn is_widened(interface: &Interface, of: &Type) -> bool {
    let is_right = of.sent.is_port() || of.sent.is_polymorphic();
    let is_wide = match interface.target.dialect {
        Dialect::Typed => interface.target.port != 4,
        Dialect::Untyped => of.shape != Shape::Scalar,
    };
    is_right && is_wide && of.placement != Placement::OutOfLine
}

/// A division in C, unless by 1.
pub(super) fn divided(by: u64) -> String {
    if by == 1 { String::new() } else { format!(" / {by}") }
}

/// The bytes of so many elements, as an expression in C.
pub(super) fn bytes(of: &Type, count: &str) -> String {
    let bits = u64::from(of.bits) * of.multiplier();
    match bits {
        8 => count.to_owned(),
        bits if bits % 8 == 0 => format!("{} * {count}", bits / 8),
        bits => format!("({bits} * {count} + 7) / 8"),
    }
}

/// How many elements a descriptor counts for so many of the program's, as an expression in C.
pub(super) fn number(of: &Type, count: &str) -> String {
    match of.multiplier() {
        1 => count.to_owned(),
        multiplier => format!("{multiplier} * {count}"),
    }
}

/// The most elements that the program can have.
pub(super) fn most(of: &Type) -> u64 {
    of.count / of.multiplier().max(1)
}

/// A routine's parameter that plays a role for an argument, if the program has it.
pub(super) fn find(argument: &Argument, side: Side, role: Role) -> Option<Parameter<'_>> {
    argument.parameters(side).into_iter().find(|parameter| parameter.role == role)
}
