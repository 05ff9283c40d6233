//! The beginning of each generated C file: includes, and helper functions for items.

use super::text::Text;
use crate::ast::ImportKind;
use crate::interface::{Interface, Side};
use crate::target::{Dialect, Target};

const COMMON: &str = "
#ifndef	mig_internal
#define	mig_internal	static
#endif

#ifndef	mig_external
#define mig_external
#endif

#ifndef	mig_unlikely
#define	mig_unlikely(X)	__builtin_expect (!! (X), 0)
#endif

#ifndef	TypeCheck
#define	TypeCheck 1
#endif

#ifndef	UseExternRCSId
#define	UseExternRCSId		1
#endif

";

const TYPED: &str = "
/* A type descriptor. */
typedef struct {
	uint32_t Name, Bits, Number, Flags;
} mig_descriptor_t;

";

/// Helper functions that write and check items of the untyped dialect.
const UNTYPED: &str = "
static inline __attribute__ ((unused)) uint32_t
mig_get(const char *At)
{
	uint32_t Word;
	__builtin_memcpy(&Word, At, sizeof Word);
	return Word;
}

/* Copies a string into a message: at most Size bytes, and the last of them is 0. Returns how many.
   The string may be what becomes the message. */
static inline __attribute__ ((unused)) uint32_t
mig_put_string(char *At, const char *String, uint32_t Size)
{
	uint32_t Length = 0;
	while (Length < Size - 1 && (At[Length] = String[Length]))
		Length++;
	At[Length] = 0;
	return Length + 1;
}

/* Writes descriptors of Most rights, of which Count exist. Rights may lie where the descriptors are
   written. */
static inline __attribute__ ((unused)) uint32_t
mig_put_rights(char *At, const void *Rights, uint32_t Count, uint32_t Most, uint32_t Disposition)
{
	__builtin_memmove(At, Rights, Count * 4);
	for (uint32_t i = Most; i-- > 0;) {
		uint32_t Words[3] = { 0, 0, Disposition << 16 };
		if (i < Count)
			__builtin_memcpy(Words, At + i * 4, 4);
		__builtin_memcpy(At + i * 12, Words, sizeof Words);
	}
	return Most * 12;
}

/* Whether Count descriptors are not of rights of this kind. */
static inline __attribute__ ((unused)) int
mig_other_rights(const char *At, uint32_t Count, uint32_t Disposition)
{
	for (uint32_t i = 0; i < Count; i++)
		if (mig_get(At + i * 12 + 8) >> 16 != Disposition)
			return 1;
	return 0;
}

/* Takes the rights out of their descriptors, also in place. */
static inline __attribute__ ((unused)) void
mig_get_ports(void *Data, const char *At, uint32_t Count, uint32_t Size)
{
	for (uint32_t i = 0; i < Count; i++)
		__builtin_memmove((char *) Data + i * Size, At + i * 12, Size);
}

/* A descriptor of memory whose address is at Address. */
static inline __attribute__ ((unused)) uint32_t
mig_put_memory64(char *At, const void *Address, uint32_t Size, uint32_t Word)
{
	__builtin_memcpy(At, Address, 8);
	__builtin_memcpy(At + 8, &Word, 4);
	__builtin_memcpy(At + 12, &Size, 4);
	return 16;
}

static inline __attribute__ ((unused)) uint32_t
mig_put_memory32(char *At, const void *Address, uint32_t Size, uint32_t Word)
{
	__builtin_memcpy(At, Address, 4);
	__builtin_memcpy(At + 4, &Size, 4);
	__builtin_memcpy(At + 8, &Word, 4);
	return 12;
}
";

/// A helper function that turns a reply into an error reply.
const FAILING: &str = "
static inline __attribute__ ((unused)) void
mig_fail(mig_reply_error_t *OutP, kern_return_t RetCode)
{
	OutP->NDR = NDR_record;
	OutP->RetCode = RetCode;
}
";

/// Helper functions for type descriptors of two words: the kind and the number of elements.
const WIDE: &str = "
#define	MIG_INLINE	0x20000000U
#define	MIG_LONG	0x40000000U
#define	MIG_DEALLOCATE	0x80000000U
#define	MIG_DESCRIPTOR(Flags)	8

static inline __attribute__ ((unused)) void
mig_describe(char *At, uint32_t Name, uint32_t Bits, uint32_t Number, uint32_t Flags)
{
	uint32_t Words[2] = { (Name & 0xff) | Bits << 8 | Flags, Number };
	__builtin_memcpy(At, Words, sizeof Words);
}

static inline __attribute__ ((unused)) mig_descriptor_t
mig_described(const char *At, uint32_t Long)
{
	uint32_t Words[2];
	(void) Long;
	__builtin_memcpy(Words, At, sizeof Words);
	return (mig_descriptor_t) { Words[0] & 0xff, Words[0] >> 8 & 0xffff, Words[1], Words[0] & ~0xffffffU };
}
";

/// Helper functions for type descriptors of one word, or of three in the long form. The caller
/// names the form that it expects: a short descriptor may be the message's last word, and nothing
/// may be read past it.
const NARROW: &str = "
#define	MIG_INLINE	0x10000000U
#define	MIG_LONG	0x20000000U
#define	MIG_DEALLOCATE	0x40000000U
#define	MIG_DESCRIPTOR(Flags)	((Flags) & MIG_LONG ? 12 : 4)

static inline __attribute__ ((unused)) void
mig_describe(char *At, uint32_t Name, uint32_t Bits, uint32_t Number, uint32_t Flags)
{
	if (Flags & MIG_LONG) {
		uint32_t Words[3] = { Flags, (Name & 0xffff) | Bits << 16, Number };
		__builtin_memcpy(At, Words, sizeof Words);
	} else {
		uint32_t Word = (Name & 0xff) | Bits << 8 | Number << 16 | Flags;
		__builtin_memcpy(At, &Word, sizeof Word);
	}
}

static inline __attribute__ ((unused)) mig_descriptor_t
mig_described(const char *At, uint32_t Long)
{
	uint32_t Word;
	__builtin_memcpy(&Word, At, sizeof Word);
	if (Long) {
		uint32_t Words[2];
		__builtin_memcpy(Words, At + 4, sizeof Words);
		return (mig_descriptor_t) { Words[0] & 0xffff, Words[0] >> 16, Words[1], Word & 0xf0000000U };
	}
	return (mig_descriptor_t) { Word & 0xff, Word >> 8 & 0xff, Word >> 16 & 0xfff, Word & 0xf0000000U };
}
";

/// A helper function that compares a whole descriptor with the only valid one.
const COMPARING: &str = "
static inline __attribute__ ((unused)) int
mig_differs(const char *At, uint32_t Name, uint32_t Bits, uint32_t Number, uint32_t Flags)
{
	char Expected[12];
	mig_describe(Expected, Name, Bits, Number, Flags);
	return __builtin_memcmp(At, Expected, MIG_DESCRIPTOR(Flags)) != 0;
}
";

/// The helper functions that copy data.
fn copying(target: &Target) -> String {
    format!(
        "
/* Copies data into a message and clears what follows up to a word. Returns the size of both. */
static inline __attribute__ ((unused)) uint32_t
mig_put(char *At, const void *Data, uint32_t Bytes)
{{
	uint32_t Padded = (Bytes + {less}) & ~{less}U;
	if (Bytes)
		__builtin_memmove(At, Data, Bytes);
	if (Padded > Bytes)
		__builtin_memset(At + Bytes, 0, Padded - Bytes);
	return Padded;
}}
",
        less = target.word - 1,
    )
}

/// The helper functions that copy rights where the typed dialect's messages use more bytes for a
/// right than programs do.
fn copying_rights(target: &Target) -> String {
    let port = target.port;
    let slot = if port == 8 { "uint64_t" } else { "uint32_t" };
    format!(
        "
/* The same for rights: each has {port} bytes in a message and Size in the program. The data may be
   what becomes the message. */
static inline __attribute__ ((unused)) uint32_t
mig_put_ports(char *At, const void *Data, uint32_t Count, uint32_t Size)
{{
	__builtin_memmove(At, Data, Count * Size);
	for (uint32_t i = Count; i-- > 0;) {{
		{slot} Slot = 0;
		__builtin_memcpy(&Slot, At + i * Size, Size);
		__builtin_memcpy(At + i * {port}, &Slot, {port});
	}}
	return Count * {port};
}}

/* The other way round. */
static inline __attribute__ ((unused)) void
mig_get_ports(void *Data, const char *At, uint32_t Count, uint32_t Size)
{{
	for (uint32_t i = 0; i < Count; i++)
		__builtin_memmove((char *) Data + i * Size, At + i * {port}, Size);
}}
"
    )
}

/// Writes the beginning of the C file of a side.
pub(super) fn prologue(text: &mut Text, interface: &Interface, side: Side, header: &str) {
    if side == Side::Server {
        text.line(format!("/* Module {} */\n", interface.name));
    }
    text.raw("#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n\n");
    if side == Side::User && !header.is_empty() {
        text.line(format!("#include \"{header}\""));
    }
    text.raw("#define EXPORT_BOOLEAN\n#include <mach/boolean.h>\n#include <mach/kern_return.h>\n");
    text.raw("#include <mach/message.h>\n");
    if side == Side::User {
        text.raw("#include <mach/notify.h>\n");
    }
    text.raw("#include <mach/mig_errors.h>\n");
    match interface.target.dialect {
        Dialect::Typed => {
            text.raw("#include <mach/mig_support.h>\n#include <stdint.h>\n");
            text.raw(COMMON);
            text.raw(TYPED);
            text.raw(if interface.target.descriptor == 8 { WIDE } else { NARROW });
            text.raw(COMPARING);
            text.raw(&copying(&interface.target));
            text.raw(&copying_rights(&interface.target));
        }
        Dialect::Untyped => {
            text.raw("#include <mach/ndr.h>\n#include <stdint.h>\n");
            text.raw(COMMON);
            text.raw(&copying(&interface.target));
            text.raw(UNTYPED);
            text.raw(if side == Side::Server { FAILING } else { "" });
        }
    }
    if let Some(id) = &interface.rcs_id {
        let (name, side) = (&interface.name, if side == Side::User { "user" } else { "server" });
        text.line("\n#if\tUseExternRCSId");
        text.line(format!("char {name}_{side}_rcsid[] = {id};"));
        text.line("#else\t/* UseExternRCSId */");
        text.line(format!("static char rcsid[] = {id};"));
        text.line("#endif\t/* UseExternRCSId */");
    }
    text.line("");
    match side {
        Side::User => {
            text.raw("#define msgh_request_port\tmsgh_remote_port\n");
            text.raw("#define msgh_reply_port\t\tmsgh_local_port\n");
        }
        Side::Server => {
            text.raw("#define msgh_request_port\tmsgh_local_port\n");
            text.raw("#define MACH_MSGH_BITS_REQUEST(bits)\tMACH_MSGH_BITS_LOCAL(bits)\n");
            text.raw("#define msgh_reply_port\t\tmsgh_remote_port\n");
            text.raw("#define MACH_MSGH_BITS_REPLY(bits)\tMACH_MSGH_BITS_REMOTE(bits)\n");
        }
    }
    text.line("");
    imports(text, interface, side);
}

/// Writes includes of the files that the definition imports for a side.
pub(super) fn imports(text: &mut Text, interface: &Interface, side: Side) {
    let own = if side == Side::User { ImportKind::User } else { ImportKind::Server };
    for import in interface.imports.iter().filter(|import| [ImportKind::All, own].contains(&import.kind)) {
        text.line(format!("#include {}", import.file));
    }
}
