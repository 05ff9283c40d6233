//! C code for items of the untyped dialect: descriptors of rights and memory, then plain data.

use super::item::{Parts, Received};
use super::parameter::{bytes, most};
use super::text::Text;
use crate::interface::{Argument, Deallocate, Interface, Routine};
use crate::ipc_type::IpcType;
use crate::layout::{Item, ItemKind, Message};
use crate::types::{Placement, Shape};

/// The kernel's numbers for descriptors of memory out of line and of rights in memory out of line.
const MEMORY: u32 = 1;
const RIGHTS: u32 = 2;

/// Writes code that puts an item that belongs to no argument into the message.
pub(super) fn pack_own(text: &mut Text, message: &Message, item: &Item, buffer: &str) {
    let (address, bytes) = match item.kind {
        ItemKind::DataRepresentation => ("&NDR_record".to_owned(), 8),
        ItemKind::Body => (format!("&(uint32_t) {{ {} }}", message.descriptors()), 4),
        _ => ("&(uint32_t) { KERN_SUCCESS }".to_owned(), 4),
    };
    text.line(format!("At_ += mig_put({buffer} + At_, {address}, {bytes});"));
}

/// Writes code that puts an argument's item into the message at the cursor.
pub(super) fn pack(
    text: &mut Text,
    interface: &Interface,
    item: &Item,
    argument: &Argument,
    parts: &Parts<'_>,
) {
    let (of, buffer, address) = (&argument.of, parts.buffer, &parts.address);
    match item.kind {
        ItemKind::Value if item.descriptor.is_some() => describe(text, interface, item, argument, parts),
        ItemKind::Value if of.shape == Shape::String && of.variable => {
            text.line(format!("At_ += mig_put({buffer} + At_, {buffer} + At_, Length_);"));
        }
        ItemKind::Value if of.shape == Shape::String => {
            let most = item.data;
            text.line(format!("Length_ = mig_put_string({buffer} + At_, {address}, {most});"));
            text.line(format!("__builtin_memset({buffer} + At_ + Length_, 0, {most} - Length_);"));
            text.line(format!("At_ += mig_put({buffer} + At_, {buffer} + At_, {most});"));
        }
        ItemKind::Value if of.variable => {
            let size = bytes(of, &parts.count);
            text.line(format!("At_ += mig_put({buffer} + At_, {address}, {size});"));
        }
        ItemKind::Value => {
            text.line(format!("At_ += mig_put({buffer} + At_, {address}, {});", item.data));
        }
        // The length of a string is not known before it has been copied into the message, which the
        // item of its value does.
        ItemKind::Count if of.shape == Shape::String => {
            text.line(format!("Length_ = mig_put_string({buffer} + At_ + 4, {address}, {});", of.count));
            text.line(format!("At_ += mig_put({buffer} + At_, &Length_, 4);"));
        }
        ItemKind::Count => {
            if of.placement == Placement::Inline {
                text.line(format!("if (mig_unlikely ({} > {}))", parts.count, most(of)));
                text.deeper(parts.too_large);
            }
            text.line(format!("At_ += mig_put({buffer} + At_, &(uint32_t) {{ {} }}, 4);", parts.count));
        }
        _ => text.line(format!("At_ += mig_put({buffer} + At_, &(uint32_t) {{ 0 }}, 4);")),
    }
}

/// Writes code that puts the descriptors of an argument into the message.
fn describe(text: &mut Text, interface: &Interface, item: &Item, argument: &Argument, parts: &Parts<'_>) {
    let Some(descriptor) = &item.descriptor else { return };
    let (of, buffer, address) = (&argument.of, parts.buffer, &parts.address);
    let is_right = descriptor.sent.is_port() || descriptor.sent.is_polymorphic();
    let disposition =
        if descriptor.sent.is_polymorphic() { parts.name.clone() } else { descriptor.sent.in_c() };
    if descriptor.placement == Placement::Inline {
        let number = if of.is_counted() { parts.count.clone() } else { of.count.to_string() };
        if of.is_counted() {
            text.line(format!("if (mig_unlikely ({number} > {}))", most(of)));
            text.deeper(parts.too_large);
        }
        let most = of.count;
        text.line(format!(
            "At_ += mig_put_rights({buffer} + At_, {address}, {number}, {most}, {disposition});"
        ));
        return;
    }
    let deallocate = match argument.deallocate {
        Deallocate::No => "0".to_owned(),
        Deallocate::Yes => "1".to_owned(),
        Deallocate::Variable => format!("({} != 0)", parts.deallocate),
    };
    let copy = u32::from(!argument.physical_copy) << 8;
    let (kind, disposition) = if is_right {
        (RIGHTS, format!(" | (uint32_t) {disposition} << 16"))
    } else {
        (MEMORY, String::new())
    };
    let size = match (is_right, of.variable) {
        (true, true) => parts.count.clone(),
        (true, false) => of.count.to_string(),
        (false, true) => bytes(of, &parts.count),
        (false, false) => of.bytes_of(of.count).to_string(),
    };
    let word = format!("{}u | {deallocate}{disposition}", kind << 24 | copy);
    let memory = format!("mig_put_memory{}", interface.target.pointer * 8);
    text.line(format!("At_ += {memory}({buffer} + At_, {address}, {size}, {word});"));
}

/// Writes a check of an item that belongs to no argument. A client has read the result before.
pub(super) fn check_own(text: &mut Text, message: &Message, item: &Item, received: &Received<'_>) {
    if item.kind == ItemKind::Body {
        let count = message.descriptors();
        text.check(&format!("mig_get({} + At_) != {count}", received.buffer), received.failure);
    }
    text.line(format!("At_ += {};", item.data));
}

/// Writes a check of an argument's item.
pub(super) fn check(
    text: &mut Text,
    interface: &Interface,
    routine: &Routine,
    item: &Item,
    argument: &Argument,
    received: &Received<'_>,
) {
    let (name, of, buffer) = (&argument.name, &argument.of, received.buffer);
    match item.kind {
        ItemKind::Count => {
            let own = routine.request.items.contains(item) && !argument.in_request();
            text.line(format!("uint32_t {name}Count_ __attribute__ ((unused)) = mig_get({buffer} + At_);"));
            text.line("At_ += 4;");
            if !own {
                check_count(text, routine, argument, received);
            }
            return;
        }
        ItemKind::Value => {}
        _ => return text.line("At_ += 4;"),
    }
    text.line(format!("char *{name}P_ __attribute__ ((unused)) = {buffer} + At_;"));
    if let Some(descriptor) = &item.descriptor {
        described(text, interface, argument, descriptor.received, received);
        text.line(format!("At_ += {};", descriptor.bytes));
    } else if of.variable {
        let count = format!("{}Count_", routine.leader(argument).name);
        let size = bytes(of, &format!("(uint64_t) {count}"));
        text.line(format!("uint64_t {name}Bytes_ = {size};"));
        text.line(format!("uint64_t {name}Padded_ = ({name}Bytes_ + 3) & ~(uint64_t) 3;"));
        text.check(&format!("{name}Padded_ > Extra_"), received.failure);
        text.line(format!("Extra_ -= {name}Padded_;"));
        text.line(format!("At_ += {name}Padded_;"));
    } else {
        text.line(format!("At_ += {};", interface.target.padded(item.data)));
    }
}

/// Writes a check that an array's number of elements is valid and agrees with arrays that share it
/// by `samecount`, and with their descriptors, which stand in front of the numbers.
fn check_count(text: &mut Text, routine: &Routine, argument: &Argument, received: &Received<'_>) {
    let count = format!("{}Count_", argument.name);
    let sharing = |other: &&crate::interface::Argument| {
        other.of.variable
            && other.direction == argument.direction
            && routine.leader(other).name == argument.name
    };
    for other in routine.arguments.iter().filter(sharing) {
        let of = &other.of;
        let wrong = match of.placement {
            Placement::OutOfLine => {
                let right = of.sent.is_port() || of.sent.is_polymorphic();
                let count = format!("(uint64_t) {count}");
                let size = if right { count } else { bytes(of, &count) };
                format!("{}Size_ != {size}", other.name)
            }
            _ => format!("{count} > {}", most(of)),
        };
        text.check(&wrong, received.failure);
    }
}

/// Writes a check of an argument's descriptors at the cursor. `NAMESize_` is set to the size that a
/// descriptor of memory of varying size gives, `NAMEDisposition_` to the type of a right whose type
/// the sender chooses.
fn described(
    text: &mut Text,
    interface: &Interface,
    argument: &Argument,
    expected: IpcType,
    received: &Received<'_>,
) {
    let (name, of, buffer) = (&argument.name, &argument.of, received.buffer);
    let right = expected.is_port() || expected.is_polymorphic();
    let is_any = expected.is_polymorphic();
    if of.placement == Placement::Inline {
        if is_any {
            text.line(format!("mach_msg_type_name_t {name}Disposition_ = (unsigned char) {name}P_[10];"));
        }
        let disposition = if is_any { format!("{name}Disposition_") } else { expected.in_c() };
        let wrong = format!("mig_other_rights({buffer} + At_, {}, {disposition})", of.count);
        return text.check(&wrong, received.failure);
    }
    let size = if interface.target.pointer == 8 { 12 } else { 4 };
    text.line(format!("uint32_t {name}Word_ __attribute__ ((unused)) = mig_get({buffer} + At_ + 8);"));
    let kind = if right { RIGHTS } else { MEMORY };
    let mut wrong = format!("{name}Word_ >> 24 != {kind}");
    if is_any {
        text.line(format!("mach_msg_type_name_t {name}Disposition_ = {name}Word_ >> 16 & 0xff;"));
    } else if right {
        wrong += &format!(" || ({name}Word_ >> 16 & 0xff) != {}", expected.in_c());
    }
    text.check(&wrong, received.failure);
    text.line(format!("uint32_t {name}Size_ __attribute__ ((unused)) = mig_get({buffer} + At_ + {size});"));
    if !of.variable {
        let size = if right { of.count } else { of.bytes_of(of.count) };
        text.check(&format!("{name}Size_ != {size}"), received.failure);
    }
}
