//! C code for items of the typed dialect, each of which is a type descriptor and its data.

use super::item::{Parts, Received};
use super::parameter::{bytes, divided, element, is_widened, most, number};
use super::text::Text;
use crate::interface::{Argument, Deallocate, Interface, Side};
use crate::ipc_type::IpcType;
use crate::layout::{Item, ItemKind};
use crate::types::{Placement, Shape};

fn flags(item: &Item, argument: &Argument, parts: &Parts<'_>) -> String {
    let mut flags = Vec::new();
    let Some(descriptor) = &item.descriptor else { return String::new() };
    if descriptor.placement != Placement::OutOfLine {
        flags.push("MIG_INLINE".to_owned());
    }
    if descriptor.long {
        flags.push("MIG_LONG".to_owned());
    }
    match argument.deallocate {
        Deallocate::No => {}
        Deallocate::Yes => flags.push("MIG_DEALLOCATE".to_owned()),
        Deallocate::Variable => flags.push(format!("({} ? MIG_DEALLOCATE : 0)", parts.deallocate)),
    }
    if flags.is_empty() { "0".to_owned() } else { flags.join(" | ") }
}

/// Writes code that puts a value and its descriptor into the message at the cursor.
pub(super) fn pack(
    text: &mut Text,
    interface: &Interface,
    item: &Item,
    argument: &Argument,
    parts: &Parts<'_>,
) {
    let Some(descriptor) = &item.descriptor else { return };
    let of = &argument.of;
    let flags = flags(item, argument, parts);
    let name = if descriptor.sent.is_polymorphic() {
        if parts.depends {
            text.line(format!("if (MACH_MSG_TYPE_PORT_ANY({}))", parts.name));
            text.deeper("Simple_ = FALSE;");
        }
        parts.name.clone()
    } else {
        descriptor.sent.in_c()
    };
    let (bits, own, buffer) = (descriptor.bits, descriptor.bytes, parts.buffer);
    let counted = of.variable && of.shape != Shape::String;
    let elements = if counted { number(of, &parts.count) } else { descriptor.count.to_string() };
    let describe = |elements: &str, flags: &str| {
        format!("mig_describe({buffer} + At_, {name}, {bits}, {elements}, {flags});")
    };
    let (address, size) = (&parts.address, bytes(of, &parts.count));
    match of.placement {
        Placement::OutOfLine => {
            text.line(describe(&elements, &flags));
            text.line(format!("At_ += {own};"));
            text.line(format!("At_ += mig_put({buffer} + At_, {address}, {});", interface.target.pointer));
        }
        Placement::Either => either(text, interface, argument, parts, &describe, &flags, own),
        Placement::Inline if of.shape == Shape::String => {
            text.line(format!("Length_ = mig_strncpy({buffer} + At_ + {own}, {address}, {});", item.data));
            if of.variable {
                // The string's final zero is sent if the message has room for it.
                text.line(format!("Length_ += Length_ < {};", item.data));
                text.line(describe("Length_", &flags));
                text.line(format!("At_ += {own};"));
                text.line(format!("At_ += mig_put({buffer} + At_, {buffer} + At_, Length_);"));
            } else {
                text.line(describe(&elements, &flags));
                text.line(format!(
                    "__builtin_memset({buffer} + At_ + {own} + Length_, 0, {} - Length_);",
                    item.data
                ));
                text.line(format!("At_ += {own};"));
                text.line(format!("At_ += mig_put({buffer} + At_, {buffer} + At_, {});", item.data));
            }
        }
        Placement::Inline => {
            if counted {
                text.line(format!("if (mig_unlikely ({} > {}))", parts.count, most(of)));
                text.deeper(parts.too_large);
            }
            text.line(describe(&elements, &flags));
            text.line(format!("At_ += {own};"));
            let put = match (is_widened(interface, of), counted) {
                (true, _) => {
                    let one = element(of, parts.side);
                    format!("mig_put_ports({buffer} + At_, {address}, {elements}, sizeof({one}))")
                }
                (false, true) => format!("mig_put({buffer} + At_, {address}, {size})"),
                (false, false) => format!("mig_put({buffer} + At_, {address}, {})", item.data),
            };
            text.line(format!("At_ += {put};"));
        }
    }
}

/// Writes code that sends an array in the message if it fits, otherwise out of line.
fn either(
    text: &mut Text,
    interface: &Interface,
    argument: &Argument,
    parts: &Parts<'_>,
    describe: &dyn Fn(&str, &str) -> String,
    flags: &str,
    own: u64,
) {
    let (of, buffer, address) = (&argument.of, parts.buffer, &parts.address);
    let elements = number(of, &parts.count);
    // The server's function may have replaced the pointer into the reply by memory of its own; then
    // the array goes out of line.
    let outside = match parts.side {
        Side::User => format!("{} > {}", parts.count, most(of)),
        Side::Server => format!("{}P_ != (void *) {}", argument.name, argument.name),
    };
    text.block(format!("if ({outside})"), |text| {
        text.line(describe(&elements, &flags.replace("MIG_INLINE | ", "")));
        text.line(format!("At_ += {own};"));
        let pointer = match parts.side {
            Side::User => format!("&(const void *) {{ {address} }}"),
            Side::Server => format!("&(void *) {{ {address} }}"),
        };
        text.line(format!("At_ += mig_put({buffer} + At_, {pointer}, {});", interface.target.pointer));
        if parts.depends {
            text.line("Simple_ = FALSE;");
        }
    });
    text.block("else", |text| {
        text.line(describe(&elements, flags));
        text.line(format!("At_ += {own};"));
        let put = if is_widened(interface, of) {
            let one = element(of, parts.side);
            format!("mig_put_ports({buffer} + At_, {address}, {elements}, sizeof({one}))")
        } else {
            format!("mig_put({buffer} + At_, {address}, {})", bytes(of, &parts.count))
        };
        text.line(format!("At_ += {put};"));
    });
}

/// Writes a check of the descriptor of one 32-bit integer.
pub(super) fn check_integer(text: &mut Text, at: &str, failure: &str) {
    text.check(&format!("mig_differs({at}, MACH_MSG_TYPE_INTEGER_32, 32, 1, MIG_INLINE)"), failure);
}

/// Writes code that puts the descriptor of one 32-bit integer into the message.
pub(super) fn describe_integer(text: &mut Text, buffer: &str, item: &Item) {
    let own = item.descriptor.map_or(0, |descriptor| descriptor.bytes);
    text.line(format!("mig_describe({buffer} + At_, MACH_MSG_TYPE_INTEGER_32, 32, 1, MIG_INLINE);"));
    text.line(format!("At_ += {own};"));
}

/// The number of an array's elements in a received message, as the program counts them: an
/// expression in C.
pub(super) fn count(argument: &Argument) -> String {
    format!("{}Type_.Number{}", argument.name, divided(argument.of.multiplier()))
}

/// Writes a check of the descriptor at the cursor and of the size of its data, then moves the
/// cursor past both. A descriptor that may vary is read into `NAMEType_`. `Extra_` counts the bytes
/// of data of varying size that have not been consumed.
pub(super) fn check(
    text: &mut Text,
    interface: &Interface,
    item: &Item,
    argument: &Argument,
    Received { buffer, failure }: &Received<'_>,
) {
    let Some(descriptor) = &item.descriptor else { return };
    let (name, of, target) = (&item.name, &argument.of, &interface.target);
    let own = descriptor.bytes;
    if item.kind == ItemKind::Count {
        check_integer(text, &format!("{buffer} + At_"), failure);
        text.line(format!("uint32_t {}Count_;", argument.name));
        text.line(format!("__builtin_memcpy(&{}Count_, {buffer} + At_ + {own}, 4);", argument.name));
        return text.line(format!("At_ += {};", own + target.padded(item.data)));
    }
    let received = descriptor.received;
    if descriptor.placement == Placement::Inline && !descriptor.variable && !received.is_polymorphic() {
        let (name, bits, count) = (received.in_c(), descriptor.bits, descriptor.count);
        let flags = if descriptor.long { "MIG_INLINE | MIG_LONG" } else { "MIG_INLINE" };
        text.check(&format!("mig_differs({buffer} + At_, {name}, {bits}, {count}, {flags})"), failure);
    } else {
        let long = if descriptor.long { "MIG_LONG" } else { "0" };
        text.line(format!("mig_descriptor_t {name}Type_ = mig_described({buffer} + At_, {long});"));
        text.check(&mismatch(item, received), failure);
    }
    text.line(format!("At_ += {own};"));
    text.line(format!("char *{name}P_ __attribute__ ((unused)) = {buffer} + At_;"));
    if !item.varies {
        return text.line(format!("At_ += {};", target.padded(item.data)));
    }
    let bits = u64::from(descriptor.bits);
    let inline = if bits.is_multiple_of(8) {
        format!("(uint64_t) {name}Type_.Number * {}", bits / 8)
    } else {
        format!("((uint64_t) {name}Type_.Number * {bits} + 7) / 8")
    };
    let size = match of.placement {
        Placement::Either => {
            format!("({name}Type_.Flags & MIG_INLINE) ? {inline} : {}", target.pointer)
        }
        _ => inline,
    };
    text.line(format!("uint64_t {name}Bytes_ = {size};"));
    text.line(format!(
        "uint64_t {name}Padded_ = ({name}Bytes_ + {less}) & ~(uint64_t) {less};",
        less = target.word - 1
    ));
    text.check(&format!("{name}Padded_ > Extra_"), failure);
    text.line(format!("Extra_ -= {name}Padded_;"));
    text.line(format!("At_ += {name}Padded_;"));
}

/// A C condition that holds if a received descriptor is not one that the item may have.
fn mismatch(item: &Item, received: IpcType) -> String {
    let (name, Some(descriptor)) = (&item.name, &item.descriptor) else { return "0".to_owned() };
    let long = if descriptor.long { " | MIG_LONG" } else { "" };
    let expected = match descriptor.placement {
        Placement::OutOfLine if descriptor.long => "MIG_LONG".to_owned(),
        Placement::OutOfLine => "0".to_owned(),
        _ => format!("MIG_INLINE{long}"),
    };
    // The deallocation flag is not checked in a received descriptor: it concerns only the sender's
    // copy.
    let (open, free) = match descriptor.placement {
        Placement::Inline => ("(", ""),
        Placement::OutOfLine => ("(", " & ~MIG_DEALLOCATE"),
        Placement::Either => ("((", " & ~MIG_DEALLOCATE) | MIG_INLINE"),
    };
    let flags = format!("{open}{name}Type_.Flags{free}) != ({expected})");
    let mut wrong = vec![flags, format!("{name}Type_.Bits != {}", descriptor.bits)];
    if !received.is_polymorphic() {
        wrong.push(format!("{name}Type_.Name != {}", received.in_c()));
    }
    if !descriptor.variable {
        wrong.push(format!("{name}Type_.Number != {}", descriptor.count));
    } else if descriptor.placement == Placement::Inline {
        wrong.push(format!("{name}Type_.Number > {}", descriptor.count));
    }
    let wrong: Vec<String> = wrong.into_iter().map(|wrong| format!("({wrong})")).collect();
    wrong.join(" ||\n\t    ")
}
