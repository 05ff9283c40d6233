/* The part of L4's interface that stubs use. Messages pass through the standard input and output;
   with L4_LOOPBACK they go to a server in the same program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t L4_Word_t;
typedef struct { L4_Word_t raw; } L4_ThreadId_t, L4_MsgTag_t;
typedef struct { L4_Word_t raw[2]; } L4_MapItem_t;

static L4_Word_t message_registers[64], buffer_registers[33];

static inline L4_MsgTag_t l4_tag(L4_Word_t raw) { return (L4_MsgTag_t) { raw }; }
static inline void L4_LoadMR(int i, L4_Word_t word) { message_registers[i] = word; }
static inline void L4_StoreMR(int i, L4_Word_t *word) { *word = message_registers[i]; }
static inline void L4_LoadBR(int i, L4_Word_t word) { buffer_registers[i] = word; }
static inline L4_Word_t L4_Label(L4_MsgTag_t tag) { return tag.raw >> 16; }
static inline L4_Word_t L4_UntypedWords(L4_MsgTag_t tag) { return tag.raw & 0x3f; }
static inline L4_Word_t L4_TypedWords(L4_MsgTag_t tag) { return tag.raw >> 6 & 0x3f; }
static inline int L4_IpcFailed(L4_MsgTag_t tag) { return (tag.raw & 0x8000) != 0; }

/* Calls a function for each string of the message in the registers, in order. */
static inline void each_string(void (*what)(void *at, L4_Word_t bytes, int index), int *count)
{
	L4_MsgTag_t tag = l4_tag(message_registers[0]);
	L4_Word_t at = 1 + L4_UntypedWords(tag), end = at + L4_TypedWords(tag);
	for (*count = 0; at + 1 < end; at += 2)
		if (!(message_registers[at] & 8)) {
			what((void *) message_registers[at + 1], message_registers[at] >> 10, *count);
			++*count;
		}
}

static inline void write_string(void *at, L4_Word_t bytes, int index)
{
	(void) index;
	fwrite(at, 1, bytes, stdout);
}

static inline void L4_SendMessage(void)
{
	int count;
	fwrite(message_registers, sizeof message_registers, 1, stdout);
	each_string(write_string, &count);
	fflush(stdout);
}

static inline void read_string(void *at, L4_Word_t bytes, int index)
{
	L4_Word_t room = buffer_registers[1 + 2 * index] >> 10;
	(void) at;
	if (!(buffer_registers[0] & 1) || bytes > room)
		exit(3);
	if (bytes && fread((void *) buffer_registers[2 + 2 * index], bytes, 1, stdin) != 1)
		exit(4);
}

/* Reads a message from the standard input; returns 0 at its end. */
static inline int L4_ReceiveMessage(void)
{
	int count;
	if (fread(message_registers, sizeof message_registers, 1, stdin) != 1)
		return 0;
	each_string(read_string, &count);
	return 1;
}

#ifdef L4_LOOPBACK

/* Lets the server handle the request in the message registers. Its strings are in the buffers. */
static int (*loopback_serve)(void);
static void *loopback_buffers[8];

static inline void to_server(void *at, L4_Word_t bytes, int index)
{
	__builtin_memcpy(loopback_buffers[index], at, bytes);
}

static inline void to_client(void *at, L4_Word_t bytes, int index)
{
	if (!(buffer_registers[0] & 1) || bytes > buffer_registers[1 + 2 * index] >> 10)
		exit(3);
	__builtin_memcpy((void *) buffer_registers[2 + 2 * index], at, bytes);
}

static inline L4_MsgTag_t L4_Send(L4_ThreadId_t to)
{
	int count;
	(void) to;
	each_string(to_server, &count);
	loopback_serve();
	return l4_tag(0);
}

static inline L4_MsgTag_t L4_Call(L4_ThreadId_t to)
{
	int count;
	L4_Send(to);
	each_string(to_client, &count);
	return l4_tag(message_registers[0]);
}

#else

static inline L4_MsgTag_t L4_Send(L4_ThreadId_t to)
{
	(void) to;
	L4_SendMessage();
	return l4_tag(0);
}

static inline L4_MsgTag_t L4_Call(L4_ThreadId_t to)
{
	L4_Send(to);
	return L4_ReceiveMessage() ? l4_tag(message_registers[0]) : l4_tag(0x8000);
}

#endif

/* Stands for the system call, with MR0 to MR7 in the caller's variables: sends a message to a
   thread, and receives a reply if `from_specifier` is not 0. */
static inline L4_Word_t l4_ipc_registers(L4_Word_t to, L4_Word_t from_specifier, L4_Word_t timeouts,
    L4_Word_t mr[8])
{
	L4_ThreadId_t partner = { to };
	(void) timeouts;
	__builtin_memcpy(message_registers, mr, 8 * sizeof *mr);
	L4_MsgTag_t tag = from_specifier ? L4_Call(partner) : L4_Send(partner);
	__builtin_memcpy(mr, message_registers, 8 * sizeof *mr);
	mr[0] = tag.raw;
	return from_specifier;
}
