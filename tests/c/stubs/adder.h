/* Written by mig from the definition of adder. Do not edit. */
#ifndef	_adder_l4_
#define	_adder_l4_

#include <l4/ipc.h>
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

/* add */
static inline int32_t
add(L4_ThreadId_t To_, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t *sum, uint64_t *count)
{
	struct mig_l4_message Own_ = { { 0 } }, *Message_ = &Own_;
	L4_Word_t At_ = 1, Untyped_;
	L4_MsgTag_t Tag_;
	mig_l4_load(Message_, At_++, a);
	mig_l4_load(Message_, At_++, b);
	mig_l4_load(Message_, At_++, c);
	mig_l4_load(Message_, At_++, d);
	Untyped_ = At_ - 1;
	Message_->MR[0] = l4_tag((L4_Word_t) 4900 << 16 | (At_ - 1 - Untyped_) << 6 | Untyped_).raw;
	mig_l4_call(Message_, To_);
	Tag_ = mig_l4_tag(Message_);
	if ((Tag_.raw & ~(L4_Word_t) 0x7000) != ((L4_Word_t) 5000 << 16 | 3)
	    || mig_l4_word(Message_, 1) != 0)
		return mig_l4_failure(Tag_, mig_l4_word(Message_, 1), 5000);
	At_ = 2;
	Untyped_ = L4_UntypedWords(Tag_);
	(void) At_, (void) Untyped_;
	*sum = mig_l4_word(Message_, At_++);
	*count = mig_l4_word(Message_, At_++);
	return 0;
}

/* send_back */
static inline int32_t
send_back(L4_ThreadId_t To_, const void *block, void *copy)
{
	struct mig_l4_message Own_ = { { 0 } }, *Message_ = &Own_;
	L4_Word_t At_ = 1, Untyped_;
	L4_MsgTag_t Tag_;
	mig_l4_load(Message_, At_++, 512);
	mig_l4_load(Message_, At_++, 512);
	Untyped_ = At_ - 1;
	mig_l4_put_string(Message_, At_, block, 512);
	At_ += 2;
	Message_->MR[0] = l4_tag((L4_Word_t) 4901 << 16 | (At_ - 1 - Untyped_) << 6 | Untyped_).raw;
	L4_LoadBR(1, (512) << 10 | 0);
	L4_LoadBR(2, (L4_Word_t) copy);
	L4_LoadBR(0, 1);
	mig_l4_call(Message_, To_);
	L4_LoadBR(0, 0);
	Tag_ = mig_l4_tag(Message_);
	if ((Tag_.raw & ~(L4_Word_t) 0x7000) != ((L4_Word_t) 5001 << 16 | 130)
	    || mig_l4_word(Message_, 1) != 0)
		return mig_l4_failure(Tag_, mig_l4_word(Message_, 1), 5001);
	At_ = 2;
	Untyped_ = L4_UntypedWords(Tag_);
	(void) At_, (void) Untyped_;
	L4_Word_t copyCount_ = mig_l4_word(Message_, At_++);
	if (copyCount_ != 512)
		return MIG_L4_TYPE_ERROR;
	if (!mig_l4_is_string(Message_, At_, copyCount_))
		return MIG_L4_TYPE_ERROR;
	At_ += 2;
	return 0;
}

/* The functions that carry out the requests in the server. For an array of the reply, *Cnt is its
   room when the function is called. */
struct adder_functions {
	int32_t (*add)(void *Self, L4_ThreadId_t Caller, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t *sum, uint64_t *count);
	int32_t (*send_back)(void *Self, L4_ThreadId_t Caller, const void *block, void *copy);
};

static inline int
adder_serve_add(const struct adder_functions *Functions_, void *Self_,
    L4_ThreadId_t Caller_, struct mig_l4_message *Message_, const void *const *Strings_,
    char *Room_, L4_Word_t RoomBytes_)
{
	L4_MsgTag_t Tag_ = mig_l4_tag(Message_);
	L4_Word_t At_ = 1, Untyped_ = L4_UntypedWords(Tag_);
	int32_t Status_ = MIG_L4_BAD_ARGUMENTS;
	(void) At_, (void) Untyped_, (void) Strings_, (void) Room_, (void) RoomBytes_;
	uint64_t a = 0;
	uint64_t b = 0;
	uint64_t c = 0;
	uint64_t d = 0;
	uint64_t sum = 0;
	uint64_t count = 0;
	if ((Tag_.raw & 0xfff) != 4)
		goto refuse;
	a = mig_l4_word(Message_, At_++);
	b = mig_l4_word(Message_, At_++);
	c = mig_l4_word(Message_, At_++);
	d = mig_l4_word(Message_, At_++);
	Status_ = MIG_L4_BAD_ID;
if (!Functions_->add)
		goto refuse;
	Status_ = Functions_->add(Self_, Caller_, a, b, c, d, &sum, &count);
	if (Status_ == MIG_L4_NO_REPLY)
		return 0;
	if (Status_ != 0)
		goto refuse;
	Status_ = MIG_L4_ARRAY_TOO_LARGE;
	At_ = 1;
	mig_l4_load(Message_, At_++, 0);
	mig_l4_load(Message_, At_++, sum);
	mig_l4_load(Message_, At_++, count);
	Untyped_ = At_ - 1;
	Message_->MR[0] = l4_tag((L4_Word_t) 5000 << 16 | (At_ - 1 - Untyped_) << 6 | Untyped_).raw;
	return 1;
refuse:
	mig_l4_load(Message_, 1, (uint32_t) Status_);
	Message_->MR[0] = (L4_Word_t) 5000 << 16 | 1;
	return 1;
}

static inline int
adder_serve_send_back(const struct adder_functions *Functions_, void *Self_,
    L4_ThreadId_t Caller_, struct mig_l4_message *Message_, const void *const *Strings_,
    char *Room_, L4_Word_t RoomBytes_)
{
	L4_MsgTag_t Tag_ = mig_l4_tag(Message_);
	L4_Word_t At_ = 1, Untyped_ = L4_UntypedWords(Tag_);
	int32_t Status_ = MIG_L4_BAD_ARGUMENTS;
	(void) At_, (void) Untyped_, (void) Strings_, (void) Room_, (void) RoomBytes_;
	const void *block = 0;
	L4_Word_t copyRoom_ = 0;
	void *copy = Room_;
	if ((Tag_.raw & 0xfff) != 130)
		goto refuse;
	L4_Word_t blockCount_ = mig_l4_word(Message_, At_++);
	if (blockCount_ != 512)
		goto refuse;
	copyRoom_ = mig_l4_word(Message_, At_++);
	if (!mig_l4_is_string(Message_, At_, blockCount_))
		goto refuse;
	At_ += 2;
	block = Strings_[0];
	if (copyRoom_ > RoomBytes_)
		copyRoom_ = RoomBytes_;
	copy = Room_;
	if (copyRoom_ < 512) {
		Status_ = MIG_L4_ARRAY_TOO_LARGE;
	goto refuse;
	}
	RoomBytes_ -= copyRoom_;
	Room_ += copyRoom_;
	Status_ = MIG_L4_BAD_ID;
if (!Functions_->send_back)
		goto refuse;
	Status_ = Functions_->send_back(Self_, Caller_, block, copy);
	if (Status_ == MIG_L4_NO_REPLY)
		return 0;
	if (Status_ != 0)
		goto refuse;
	Status_ = MIG_L4_ARRAY_TOO_LARGE;
	if (512 > copyRoom_)
		goto refuse;
	At_ = 1;
	mig_l4_load(Message_, At_++, 0);
	mig_l4_load(Message_, At_++, 512);
	Untyped_ = At_ - 1;
	mig_l4_put_string(Message_, At_, copy, 512);
	At_ += 2;
	Message_->MR[0] = l4_tag((L4_Word_t) 5001 << 16 | (At_ - 1 - Untyped_) << 6 | Untyped_).raw;
	return 1;
refuse:
	mig_l4_load(Message_, 1, (uint32_t) Status_);
	Message_->MR[0] = (L4_Word_t) 5001 << 16 | 1;
	return 1;
}

/* Has the request in Message_ carried out. Strings_ are the buffers of its strings; data that is
   answered in strings is written into Room_. Returns whether there is a reply, which is in Message_. */
static inline int
adder_serve(const struct adder_functions *Functions_, void *Self_, L4_ThreadId_t Caller_,
    struct mig_l4_message *Message_, const void *const *Strings_, void *Room_, L4_Word_t RoomBytes_)
{
	L4_MsgTag_t Tag_ = mig_l4_tag(Message_);
	switch (L4_Label(Tag_)) {
	case 4900:
		return adder_serve_add(Functions_, Self_, Caller_, Message_, Strings_, Room_, RoomBytes_);
	case 4901:
		return adder_serve_send_back(Functions_, Self_, Caller_, Message_, Strings_, Room_, RoomBytes_);
	default:
		(void) Functions_, (void) Self_, (void) Caller_, (void) Strings_, (void) Room_, (void) RoomBytes_;
		mig_l4_load(Message_, 1, (uint32_t) MIG_L4_BAD_ID);
		Message_->MR[0] = (L4_Label(Tag_) + 100) << 16 | 1;
		return 1;
	}
}

#endif	/* not defined(_adder_l4_) */
