//! C stubs over direct L4 IPC: a header with inline functions for clients, and with a function that
//! dispatches requests to a server's functions.

use super::{Form, Part, Parts, Plan, fixed_words, plan};
use crate::c::text::Text;
use crate::diagnostic::Diagnostic;
use crate::interface::{Argument, Interface};

const PROLOGUE: &str = "#include <l4/ipc.h>
#include <stdint.h>

#ifndef MIG_L4_STUBS
#define MIG_L4_STUBS

/* What stubs return in addition to the server's status; 0 is success. */
#define MIG_L4_TYPE_ERROR -300
#define MIG_L4_REPLY_MISMATCH -301
#define MIG_L4_BAD_ID -303
#define MIG_L4_BAD_ARGUMENTS -304
#define MIG_L4_NO_REPLY -305
#define MIG_L4_ARRAY_TOO_LARGE -307
#define MIG_L4_IPC_FAILED -308

/* A message: MR0 to MR7, for which a compiler takes registers of the processor. The others are in
   the UTCB. */
struct mig_l4_message {
	L4_Word_t MR[8];
};

static inline void mig_l4_load(struct mig_l4_message *Message, L4_Word_t At, L4_Word_t Word)
{
	if (At < 8)
		Message->MR[At] = Word;
	else
		L4_LoadMR(At, Word);
}

static inline L4_Word_t mig_l4_word(const struct mig_l4_message *Message, L4_Word_t At)
{
	L4_Word_t Word;
	if (At < 8)
		return Message->MR[At];
	L4_StoreMR(At, &Word);
	return Word;
}

/* Sends a message and receives one into its place. Returns the sender; whether that has failed, the
   tag says. A timeout of 1 << 26 for sending is zero. */
static inline L4_ThreadId_t mig_l4_ipc(struct mig_l4_message *Message, L4_ThreadId_t To,
    L4_ThreadId_t FromSpecifier, L4_Word_t Timeouts)
{
	L4_ThreadId_t From = { l4_ipc_registers(To.raw, FromSpecifier.raw, Timeouts, Message->MR) };
	return From;
}

static inline L4_MsgTag_t mig_l4_tag(const struct mig_l4_message *Message)
{
	return l4_tag(Message->MR[0]);
}

/* The error that a message stands for which is not the reply of a request that was carried out. */
__attribute__((cold, noinline, unused)) static int32_t mig_l4_reason(L4_MsgTag_t Tag, L4_Word_t Status,
    L4_Word_t ReplyId)
{
	if (L4_IpcFailed(Tag))
		return MIG_L4_IPC_FAILED;
	if (L4_Label(Tag) != ReplyId || L4_UntypedWords(Tag) == 0)
		return MIG_L4_REPLY_MISMATCH;
	return (uint32_t) Status == 0 || Status >> 32 ? MIG_L4_TYPE_ERROR : (int32_t) Status;
}

/* The result of mig_l4_reason. The compiler is told that it is not 0: else it would warn of results
   that have no value. */
static inline int32_t mig_l4_failure(L4_MsgTag_t Tag, L4_Word_t Status, L4_Word_t ReplyId)
{
	int32_t Reason = mig_l4_reason(Tag, Status, ReplyId);
	if (Reason == 0)
		__builtin_unreachable();
	return Reason;
}

/* Sends a request, and waits for its reply. */
static inline void mig_l4_call(struct mig_l4_message *Message, L4_ThreadId_t To)
{
	mig_l4_ipc(Message, To, To, 0);
}

/* Sends a request without a reply. */
static inline void mig_l4_send(struct mig_l4_message *Message, L4_ThreadId_t To)
{
	L4_ThreadId_t Nil = { 0 };
	mig_l4_ipc(Message, To, Nil, 0);
}

/* Receives a request. Returns its sender. */
static inline L4_ThreadId_t mig_l4_wait(struct mig_l4_message *Message)
{
	L4_ThreadId_t Nil = { 0 }, Any = { ~(L4_Word_t) 0 };
	return mig_l4_ipc(Message, Nil, Any, 0);
}

/* Sends a reply to a thread that waits for it, and receives the next request. */
static inline L4_ThreadId_t mig_l4_reply_wait(struct mig_l4_message *Message, L4_ThreadId_t To)
{
	L4_ThreadId_t Any = { ~(L4_Word_t) 0 };
	return mig_l4_ipc(Message, To, Any, (L4_Word_t) 0x400 << 16);
}

/* Copies data into message registers from At on, eight bytes in each. Returns how many. */
static inline L4_Word_t mig_l4_put(struct mig_l4_message *Message, L4_Word_t At, const void *Data,
    L4_Word_t Bytes)
{
	const unsigned char *From = (const unsigned char *) Data;
	L4_Word_t Words = (Bytes + 7) / 8;
	for (L4_Word_t i = 0; i < Words; i++) {
		L4_Word_t Word = 0, Left = Bytes - 8 * i;
		/* Not by memcpy of a varying size, which a program may not have. */
		for (L4_Word_t b = 0; b < 8 && b < Left; b++)
			Word |= (L4_Word_t) From[8 * i + b] << (8 * b);
		mig_l4_load(Message, At + i, Word);
	}
	return Words;
}

/* Copies data out of message registers from At on. Returns how many registers. */
static inline L4_Word_t mig_l4_get(const struct mig_l4_message *Message, L4_Word_t At, void *Data,
    L4_Word_t Bytes)
{
	unsigned char *To = (unsigned char *) Data;
	L4_Word_t Words = (Bytes + 7) / 8;
	for (L4_Word_t i = 0; i < Words; i++) {
		L4_Word_t Word = mig_l4_word(Message, At + i), Left = Bytes - 8 * i;
		for (L4_Word_t b = 0; b < 8 && b < Left; b++)
			To[8 * i + b] = (unsigned char) (Word >> (8 * b));
	}
	return Words;
}

/* Appends a string item. */
static inline void mig_l4_put_string(struct mig_l4_message *Message, L4_Word_t At, const void *Data,
    L4_Word_t Bytes)
{
	mig_l4_load(Message, At, Bytes << 10);
	mig_l4_load(Message, At + 1, (L4_Word_t) Data);
}

/* Whether a string of so many bytes was received. */
static inline int mig_l4_is_string(const struct mig_l4_message *Message, L4_Word_t At, L4_Word_t Bytes)
{
	return (mig_l4_word(Message, At) & ~(L4_Word_t) 7) == Bytes << 10;
}
#endif
";

/// The C header of an interface.
///
/// # Errors
/// The arguments of a routine do not fit in a message.
pub fn header(interface: &Interface) -> Result<String, Diagnostic> {
    let plans = plan(interface)?;
    let (mut text, name) = (Text::default(), &interface.name);
    text.line(format!("/* Written by mig from the definition of {name}. Do not edit. */"));
    text.raw(&format!("#ifndef\t_{name}_l4_\n#define\t_{name}_l4_\n\n{PROLOGUE}"));
    for plan in &plans {
        client(&mut text, interface, plan);
    }
    functions(&mut text, interface, &plans);
    for plan in &plans {
        serve(&mut text, interface, plan);
    }
    dispatch(&mut text, interface, &plans);
    text.line(format!("\n#endif\t/* not defined(_{name}_l4_) */"));
    Ok(text.finish())
}

fn arguments<'a>(plan: &'a Plan<'_>, parts: &'a Parts) -> impl Iterator<Item = (&'a Argument, Part)> {
    parts.iter().map(|&(index, part)| (&plan.routine.arguments[index], part))
}

fn number(bytes: u64) -> String {
    format!("uint{}_t", bytes * 8)
}

/// The parameters of a client's or a server's function, as C declarations.
fn parameters(plan: &Plan<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (index, argument) in plan.routine.arguments.iter().enumerate() {
        let (name, sent) = (&argument.name, argument.in_request());
        let form_in = |parts: &Parts| {
            parts.iter().find_map(|&(other, part)| match part {
                Part::Value(form) if other == index => Some(form),
                _ => None,
            })
        };
        let (request, reply) = (form_in(&plan.request), form_in(&plan.reply));
        let Some(form) = reply.or(request) else { continue };
        let back = reply.is_some();
        // An `inout` value that the reply carries in a form other than the request's has two
        // parameters.
        let two = matches!((request, reply), (Some(request), Some(reply)) if request != reply);
        if two && let Some(request) = request {
            declare(&mut all, &format!("{name}Sent"), request, false);
        }
        if matches!(form, Form::String { .. }) && back && sent && !two {
            declare(&mut all, &format!("{name}Sent"), form, false);
        }
        declare(&mut all, name, form, back);
        let typed = sent && argument.of.sent.is_polymorphic();
        if back && argument.of.received.is_polymorphic() {
            all.push(format!("uint32_t *{name}Poly"));
        } else if typed {
            all.push(format!("uint32_t {name}Poly"));
        }
    }
    all
}

fn declare(all: &mut Vec<String>, name: &str, form: Form, back: bool) {
    let (constant, star) = if back { ("", "*") } else { ("const ", "") };
    match form {
        Form::Number { bytes } => all.push(format!("{} {star}{name}", number(bytes))),
        Form::Elements { bytes, .. } => all.push(format!("{constant}{} *{name}", number(bytes))),
        Form::Array { bytes, .. } => {
            all.push(format!("{constant}{} *{name}", number(bytes)));
            all.push(format!("L4_Word_t {star}{name}Cnt"));
        }
        Form::String { fixed, .. } => {
            all.push(format!("{constant}void *{name}"));
            if !fixed {
                all.push(format!("L4_Word_t {star}{name}Cnt"));
            }
        }
        Form::Map => all.push(format!("L4_MapItem_t {star}{name}")),
    }
}

/// The size of a string in bytes: an expression in C. `count` is the number of elements, which
/// matters only for a string of varying size.
fn string_bytes(form: Form, count: &str) -> String {
    match form {
        Form::String { most: Some(most), fixed: true, .. } => most.to_string(),
        Form::String { bytes, .. } => times(bytes, count),
        _ => String::new(),
    }
}

/// The number of bytes of `count` elements: an expression in C.
fn times(bytes: u64, count: &str) -> String {
    if bytes == 1 { count.to_owned() } else { format!("{bytes} * {count}") }
}

/// Whether the reply carries an argument, so that its parameters are addresses.
fn comes_back(plan: &Plan<'_>, argument: &Argument) -> bool {
    plan.reply.iter().any(|&(index, _)| plan.routine.arguments[index].name == argument.name)
}

/// The name of the parameter with the value that the client sends.
fn sent_name(plan: &Plan<'_>, argument: &Argument, form: Form) -> (String, bool) {
    let back = plan.reply.iter().find_map(|&(index, part)| match part {
        Part::Value(form) if plan.routine.arguments[index].name == argument.name => Some(form),
        _ => None,
    });
    match back {
        None => (argument.name.clone(), false),
        Some(back) if back != form || matches!(form, Form::String { .. }) => {
            (format!("{}Sent", argument.name), false)
        }
        Some(_) => (argument.name.clone(), true),
    }
}

/// Writes code that puts parts into the registers from `At_` on: untyped words, then map items,
/// then strings.
fn put(text: &mut Text, plan: &Plan<'_>, parts: &Parts, is_request: bool, failure: &str) {
    for (argument, part) in arguments(plan, parts) {
        let (name, star) = match part {
            Part::Value(form) if is_request => {
                let (name, address) = sent_name(plan, argument, form);
                (name, if address { "*" } else { "" })
            }
            _ => (argument.name.clone(), ""),
        };
        match part {
            Part::Value(Form::Number { .. }) => {
                text.line(format!("mig_l4_load(Message_, At_++, {star}{name});"))
            }
            Part::Value(Form::Elements { bytes, count }) => {
                text.line(format!("At_ += mig_l4_put(Message_, At_, {name}, {});", bytes * count));
            }
            Part::Value(Form::Array { bytes, most }) => {
                text.line(format!("if ({star}{name}Cnt > {most})"));
                text.deeper(failure);
                text.line(format!("mig_l4_load(Message_, At_++, {star}{name}Cnt);"));
                text.line(format!("At_ += mig_l4_put(Message_, At_, {name}, {bytes} * {star}{name}Cnt);"));
            }
            Part::Value(form @ Form::String { bytes, most, fixed }) => {
                if let Some(most) = most.filter(|_| !fixed) {
                    text.line(format!("if ({name}Cnt > {})", most / bytes));
                    text.deeper(failure);
                }
                let size = string_bytes(form, &format!("{name}Cnt"));
                text.line(format!("mig_l4_load(Message_, At_++, {size});"));
            }
            Part::Type => {
                let star = if is_request && comes_back(plan, argument) { "*" } else { "" };
                text.line(format!("mig_l4_load(Message_, At_++, {star}{name}Poly);"));
            }
            Part::Room { form } => {
                let size = string_bytes(form, &format!("*{name}Cnt"));
                text.line(format!("mig_l4_load(Message_, At_++, {size});"));
            }
            Part::Value(Form::Map) => {}
        }
    }
    text.line("Untyped_ = At_ - 1;");
    for (argument, part) in arguments(plan, parts) {
        if part == Part::Value(Form::Map) {
            let star = if is_request && comes_back(plan, argument) { "(*" } else { "(" };
            let name = &argument.name;
            text.line(format!("mig_l4_load(Message_, At_++, {star}{name}).raw[0]);"));
            text.line(format!("mig_l4_load(Message_, At_++, {star}{name}).raw[1]);"));
        }
    }
    for (argument, part) in arguments(plan, parts) {
        if let Part::Value(form @ Form::String { .. }) = part {
            let name = if is_request { sent_name(plan, argument, form).0 } else { argument.name.clone() };
            let size = string_bytes(form, &format!("{name}Cnt"));
            text.line(format!("mig_l4_put_string(Message_, At_, {name}, {size});"));
            text.line("At_ += 2;");
        }
    }
}

/// The C expression for the tag of the message whose parts have been put into the registers.
fn tag(id: u64) -> String {
    format!("l4_tag((L4_Word_t) {id} << 16 | (At_ - 1 - Untyped_) << 6 | Untyped_)")
}

fn client(text: &mut Text, interface: &Interface, plan: &Plan<'_>) {
    let routine = plan.routine;
    let mut all = vec!["L4_ThreadId_t To_".to_owned()];
    all.extend(parameters(plan));
    text.line(format!("\n/* {} */", routine.name));
    text.line("static inline int32_t");
    text.line(format!("{}{}({})", interface.user_prefix, routine.name, all.join(", ")));
    text.block("", |text| {
        text.line("struct mig_l4_message Own_ = { { 0 } }, *Message_ = &Own_;");
        text.line("L4_Word_t At_ = 1, Untyped_;");
        text.line("L4_MsgTag_t Tag_;");
        put(text, plan, &plan.request, true, "return MIG_L4_ARRAY_TOO_LARGE;");
        text.line(format!("Message_->MR[0] = {}.raw;", tag(routine.id)));
        if routine.simple {
            text.line("mig_l4_send(Message_, To_);");
            text.line("Tag_ = mig_l4_tag(Message_);");
            text.line("return L4_IpcFailed(Tag_) ? MIG_L4_IPC_FAILED : 0;");
            return;
        }
        call(text, plan);
        let id = routine.reply_id();
        text.line(match fixed_words(&plan.reply) {
            // The flags of a received tag (from another processor, redirected, propagated) are
            // masked out.
            Some((untyped, typed)) => format!(
                "if ((Tag_.raw & ~(L4_Word_t) 0x7000) != ((L4_Word_t) {id} << 16 | {})",
                typed << 6 | (1 + untyped)
            ),
            None => format!("if (L4_IpcFailed(Tag_) || L4_Label(Tag_) != {id} || L4_UntypedWords(Tag_) == 0"),
        });
        text.line("    || mig_l4_word(Message_, 1) != 0)");
        text.deeper(format!("return mig_l4_failure(Tag_, mig_l4_word(Message_, 1), {id});"));
        text.line("At_ = 2;");
        text.line("Untyped_ = L4_UntypedWords(Tag_);");
        text.line("(void) At_, (void) Untyped_;");
        get(text, plan, &plan.reply, false, "return MIG_L4_TYPE_ERROR;");
        text.line("return 0;");
    });
}

/// Writes the call's IPC, with buffers for the strings of the reply.
fn call(text: &mut Text, plan: &Plan<'_>) {
    let rooms: Vec<(&Argument, Form)> = arguments(plan, &plan.reply)
        .filter_map(|(argument, part)| match part {
            Part::Value(form @ Form::String { .. }) => Some((argument, form)),
            _ => None,
        })
        .collect();
    for (index, &(argument, form)) in rooms.iter().enumerate() {
        let more = u8::from(index + 1 < rooms.len());
        let name = &argument.name;
        let size = string_bytes(form, &format!("*{name}Cnt"));
        text.line(format!("L4_LoadBR({}, ({size}) << 10 | {more});", 1 + 2 * index));
        text.line(format!("L4_LoadBR({}, (L4_Word_t) {name});", 2 + 2 * index));
    }
    if rooms.is_empty() {
        text.line("mig_l4_call(Message_, To_);");
    } else {
        text.line("L4_LoadBR(0, 1);");
        text.line("mig_l4_call(Message_, To_);");
        text.line("L4_LoadBR(0, 0);");
    }
    text.line("Tag_ = mig_l4_tag(Message_);");
}

/// Writes code that takes parts out of a message with `Untyped_` untyped words from `At_` on, and
/// items as `Tag_` says. If the message's size does not vary, the caller has checked it.
fn get(text: &mut Text, plan: &Plan<'_>, parts: &Parts, is_request: bool, failure: &str) {
    // A server's stub stores parts in its local variables, a client's stub through the caller's
    // pointers.
    let star = if is_request { "" } else { "*" };
    let fixed = fixed_words(parts).is_some();
    let need = |text: &mut Text, words: &str| {
        if !fixed {
            text.line(format!("if (At_ + {words} > Untyped_ + 1)"));
            text.deeper(failure);
        }
    };
    for (argument, part) in arguments(plan, parts) {
        let name = match part {
            Part::Value(form) if is_request => sent_name(plan, argument, form).0,
            _ => argument.name.clone(),
        };
        match part {
            Part::Value(Form::Number { bytes }) => {
                need(text, "1");
                if bytes < 8 {
                    text.line(format!("if (mig_l4_word(Message_, At_) >> {})", bytes * 8));
                    text.deeper(failure);
                }
                text.line(format!("{star}{name} = mig_l4_word(Message_, At_++);"));
            }
            Part::Value(Form::Elements { bytes, count }) => {
                need(text, &(bytes * count).div_ceil(8).to_string());
                text.line(format!("At_ += mig_l4_get(Message_, At_, {name}, {});", bytes * count));
            }
            Part::Value(Form::Array { bytes, most }) => {
                need(text, "1");
                let count = format!("{name}Count_");
                text.line(format!("L4_Word_t {count} = mig_l4_word(Message_, At_++);"));
                text.line(format!(
                    "if ({count} > {most} || At_ + ({bytes} * {count} + 7) / 8 > Untyped_ + 1)"
                ));
                text.deeper(failure);
                if !is_request {
                    text.line(format!("if ({count} > *{name}Cnt)"));
                    text.deeper("return MIG_L4_ARRAY_TOO_LARGE;");
                }
                text.line(format!("At_ += mig_l4_get(Message_, At_, {name}, {bytes} * {count});"));
                text.line(format!("{star}{name}Cnt = {count};"));
            }
            Part::Value(form @ Form::String { bytes, most, fixed }) => {
                need(text, "1");
                let count = format!("{name}Count_");
                text.line(format!("L4_Word_t {count} = mig_l4_word(Message_, At_++);"));
                let mut wrong = Vec::new();
                if !is_request && !fixed {
                    wrong.push(format!("{count} > {}", string_bytes(form, &format!("*{name}Cnt"))));
                }
                if let Some(most) = most {
                    wrong.push(format!("{count} {} {most}", if fixed { "!=" } else { ">" }));
                }
                if bytes > 1 {
                    wrong.push(format!("{count} % {bytes}"));
                }
                if !wrong.is_empty() {
                    text.line(format!("if ({})", wrong.join(" || ")));
                    text.deeper(failure);
                }
                if !fixed {
                    text.line(format!("{star}{name}Cnt = {count} / {bytes};"));
                }
            }
            Part::Type => {
                need(text, "1");
                text.line(format!("{star}{name}Poly = mig_l4_word(Message_, At_++);"));
            }
            Part::Room { .. } => {
                need(text, "1");
                text.line(format!("{name}Room_ = mig_l4_word(Message_, At_++);"));
            }
            Part::Value(Form::Map) => {}
        }
    }
    if !fixed {
        let typed = Plan::words(parts).1;
        text.line(format!("if (At_ != Untyped_ + 1 || L4_TypedWords(Tag_) != {typed})"));
        text.deeper(failure);
    }
    for (argument, part) in arguments(plan, parts) {
        if part == Part::Value(Form::Map) {
            let name = &argument.name;
            text.line(format!("({star}{name}).raw[0] = mig_l4_word(Message_, At_++);"));
            text.line(format!("({star}{name}).raw[1] = mig_l4_word(Message_, At_++);"));
        }
    }
    let mut place = 0;
    for (argument, part) in arguments(plan, parts) {
        if let Part::Value(form @ Form::String { .. }) = part {
            let name = if is_request { sent_name(plan, argument, form).0 } else { argument.name.clone() };
            text.line(format!("if (!mig_l4_is_string(Message_, At_, {name}Count_))"));
            text.deeper(failure);
            text.line("At_ += 2;");
            if is_request {
                text.line(format!("{name} = Strings_[{place}];"));
                place += 1;
            }
        }
    }
}

/// Writes declarations of the functions that the server's program defines.
fn functions(text: &mut Text, interface: &Interface, plans: &[Plan<'_>]) {
    text.line("\n/* The functions that carry out the requests in the server. For an array of the reply, *Cnt is its\n   room when the function is called. */");
    text.line(format!("struct {}_functions {{", interface.name));
    for plan in plans {
        let mut all = vec!["void *Self".to_owned(), "L4_ThreadId_t Caller".to_owned()];
        all.extend(parameters(plan));
        text.deeper(format!("int32_t (*{})({});", plan.routine.name, all.join(", ")));
    }
    if plans.is_empty() {
        text.deeper("int None_;");
    }
    text.line("};");
}

/// Writes the local variables that a server's stub passes to the server's function.
fn variables(text: &mut Text, plan: &Plan<'_>) {
    for (argument, part) in arguments(plan, &plan.request) {
        match part {
            Part::Value(form) => variable(text, &sent_name(plan, argument, form).0, form),
            Part::Type => text.line(format!("uint32_t {}Poly = 0;", argument.name)),
            Part::Room { .. } => text.line(format!("L4_Word_t {}Room_ = 0;", argument.name)),
        }
    }
    for (argument, part) in arguments(plan, &plan.reply) {
        let shared = |form: Form| {
            let same = plan.request.iter().any(|&(index, other)| {
                plan.routine.arguments[index].name == argument.name && other == Part::Value(form)
            });
            same && !matches!(form, Form::String { .. })
        };
        match part {
            Part::Value(form) if shared(form) => {}
            Part::Value(Form::String { fixed, .. }) => {
                text.line(format!("void *{} = Room_;", argument.name));
                if !fixed {
                    text.line(format!("L4_Word_t {}Cnt = 0;", argument.name));
                }
            }
            Part::Value(form) => variable(text, &argument.name, form),
            Part::Type if argument.in_request() && argument.of.sent.is_polymorphic() => {}
            _ => text.line(format!("uint32_t {}Poly = 0;", argument.name)),
        }
    }
}

fn variable(text: &mut Text, name: &str, form: Form) {
    match form {
        Form::Number { bytes } => text.line(format!("{} {name} = 0;", number(bytes))),
        Form::Elements { bytes, count } => {
            let words = (bytes * count).div_ceil(8) * 8 / bytes;
            text.line(format!("{} {name}[{words}] = {{0}};", number(bytes)));
        }
        Form::Array { bytes, most } => {
            text.line(format!("{} {name}[{}];", number(bytes), most.max(1)));
            text.line(format!("L4_Word_t {name}Cnt = {most};"));
        }
        Form::String { fixed, .. } => {
            text.line(format!("const void *{name} = 0;"));
            if !fixed {
                text.line(format!("L4_Word_t {name}Cnt = 0;"));
            }
        }
        Form::Map => text.line(format!("L4_MapItem_t {name} = {{{{0}}}};")),
    }
}

fn serve(text: &mut Text, interface: &Interface, plan: &Plan<'_>) {
    let (routine, name) = (plan.routine, &interface.name);
    text.line("\nstatic inline int");
    text.line(format!(
        "{name}_serve_{}(const struct {name}_functions *Functions_, void *Self_,",
        routine.name
    ));
    text.line("    L4_ThreadId_t Caller_, struct mig_l4_message *Message_, const void *const *Strings_,");
    text.line("    char *Room_, L4_Word_t RoomBytes_)");
    text.block("", |text| {
        text.line("L4_MsgTag_t Tag_ = mig_l4_tag(Message_);");
        text.line("L4_Word_t At_ = 1, Untyped_ = L4_UntypedWords(Tag_);");
        text.line("int32_t Status_ = MIG_L4_BAD_ARGUMENTS;");
        text.line("(void) At_, (void) Untyped_, (void) Strings_, (void) Room_, (void) RoomBytes_;");
        variables(text, plan);
        if let Some((untyped, typed)) = fixed_words(&plan.request) {
            text.line(format!("if ((Tag_.raw & 0xfff) != {})", typed << 6 | untyped));
            text.deeper("goto refuse;");
        }
        get(text, plan, &plan.request, true, "goto refuse;");
        rooms(text, plan);
        text.line(format!("Status_ = MIG_L4_BAD_ID;\nif (!Functions_->{})", routine.name));
        text.deeper("goto refuse;");
        text.line(format!("Status_ = Functions_->{}({});", routine.name, passed(plan).join(", ")));
        if routine.simple {
            text.raw("refuse:\n\t(void) Status_;\n\treturn 0;\n");
            return;
        }
        text.line("if (Status_ == MIG_L4_NO_REPLY)");
        text.deeper("return 0;");
        text.line("if (Status_ != 0)");
        text.deeper("goto refuse;");
        text.line("Status_ = MIG_L4_ARRAY_TOO_LARGE;");
        for (argument, part) in arguments(plan, &plan.reply) {
            if let Part::Value(form @ Form::String { .. }) = part {
                let name = &argument.name;
                let size = string_bytes(form, &format!("{name}Cnt"));
                text.line(format!("if ({size} > {name}Room_)"));
                text.deeper("goto refuse;");
            }
        }
        text.line("At_ = 1;");
        text.line("mig_l4_load(Message_, At_++, 0);");
        put(text, plan, &plan.reply, false, "goto refuse;");
        text.line(format!("Message_->MR[0] = {}.raw;", tag(routine.reply_id())));
        text.line("return 1;");
        text.raw("refuse:\n");
        text.line("mig_l4_load(Message_, 1, (uint32_t) Status_);");
        text.line(format!("Message_->MR[0] = (L4_Word_t) {} << 16 | 1;", routine.reply_id()));
        text.line("return 1;");
    });
}

/// Writes code that divides the server's room for replied data among the strings of the reply.
fn rooms(text: &mut Text, plan: &Plan<'_>) {
    for (argument, part) in arguments(plan, &plan.reply) {
        if let Part::Value(Form::String { bytes, most, fixed }) = part {
            let name = &argument.name;
            text.line(format!("if ({name}Room_ > RoomBytes_)"));
            text.deeper(format!("{name}Room_ = RoomBytes_;"));
            text.line(format!("{name} = Room_;"));
            match most.filter(|_| fixed) {
                // A server's function always writes all bytes of a string of fixed size.
                Some(most) => {
                    text.line(format!("if ({name}Room_ < {most}) {{"));
                    text.deeper("Status_ = MIG_L4_ARRAY_TOO_LARGE;\n\tgoto refuse;");
                    text.line("}");
                }
                None => text.line(format!("{name}Cnt = {name}Room_ / {bytes};")),
            }
            text.line(format!("RoomBytes_ -= {name}Room_;"));
            text.line(format!("Room_ += {name}Room_;"));
        }
    }
}

/// The arguments with which a stub calls the server's function.
fn passed(plan: &Plan<'_>) -> Vec<String> {
    let mut all = vec!["Self_".to_owned(), "Caller_".to_owned()];
    for declared in parameters(plan) {
        let Some((of, name)) = declared.rsplit_once(' ') else { continue };
        let bare = name.trim_start_matches('*');
        // Parameters of arrays and strings are addresses already; other results need `&`.
        let is_count = of == "L4_Word_t" && name.starts_with('*');
        let array = plan.request.iter().chain(&plan.reply).any(|&(index, part)| {
            let argument = &plan.routine.arguments[index].name;
            let elements =
                matches!(part, Part::Value(Form::Elements { .. } | Form::Array { .. } | Form::String { .. }));
            elements && (bare == argument || bare == format!("{argument}Sent"))
        });
        if name.starts_with('*') && (!array || is_count) {
            all.push(format!("&{bare}"))
        } else {
            all.push(bare.to_owned())
        }
    }
    all
}

fn dispatch(text: &mut Text, interface: &Interface, plans: &[Plan<'_>]) {
    let name = &interface.name;
    text.line(
        "\n/* Has the request in Message_ carried out. Strings_ are the buffers of its strings; data that is\n   \
         answered in strings is written into Room_. Returns whether there is a reply, which is in Message_. */",
    );
    text.line("static inline int");
    text.line(format!(
        "{name}_serve(const struct {name}_functions *Functions_, void *Self_, L4_ThreadId_t Caller_,"
    ));
    text.line("    struct mig_l4_message *Message_, const void *const *Strings_, void *Room_, L4_Word_t RoomBytes_)");
    text.block("", |text| {
        text.line("L4_MsgTag_t Tag_ = mig_l4_tag(Message_);");
        text.line("switch (L4_Label(Tag_)) {");
        for plan in plans {
            text.line(format!("case {}:", plan.routine.id));
            text.deeper(format!(
                "return {name}_serve_{}(Functions_, Self_, Caller_, Message_, Strings_, Room_, RoomBytes_);",
                plan.routine.name
            ));
        }
        text.line("default:");
        text.deeper("(void) Functions_, (void) Self_, (void) Caller_, (void) Strings_, (void) Room_, (void) RoomBytes_;");
        text.deeper("mig_l4_load(Message_, 1, (uint32_t) MIG_L4_BAD_ID);");
        text.deeper("Message_->MR[0] = (L4_Label(Tag_) + 100) << 16 | 1;");
        text.deeper("return 1;");
        text.line("}");
    });
}
