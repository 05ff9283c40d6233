#include "everything.h"
#include <string.h>

static int32_t do_numbers(void *self, L4_ThreadId_t caller, uint8_t a, uint16_t b, uint32_t c, uint64_t d,
    uint64_t *sum, uint32_t *count)
{
	(void) self, (void) caller;
	if (a == 13)
		return -13;
	*sum = (uint64_t) a + b + c + d;
	++*count;
	return 0;
}

static int32_t do_nothing(void *self, L4_ThreadId_t caller)
{
	(void) self, (void) caller;
	return 0;
}

static int32_t do_hint(void *self, L4_ThreadId_t caller, uint32_t type, const uint8_t *text, L4_Word_t textCnt)
{
	(void) self, (void) caller;
	if (type != 7 || textCnt != 6 || memcmp(text, "a hint", 6))
		exit(5);
	return 0;
}

static int32_t do_small(void *self, L4_ThreadId_t caller, const uint8_t *text, L4_Word_t textCnt,
    const uint16_t *shorts, L4_Word_t shortsCnt, const uint32_t *five, const uint8_t *name, L4_Word_t nameCnt,
    uint64_t *pair, uint16_t *backwards, L4_Word_t *backwardsCnt, uint8_t *upper, L4_Word_t *upperCnt)
{
	(void) self, (void) caller;
	if (nameCnt != 4 || memcmp(name, "name", 4))
		return 1;
	pair[1] = pair[0];
	pair[0] = five[0] + five[1] + five[2] + five[3] + five[4];
	for (L4_Word_t i = 0; i < shortsCnt; i++)
		backwards[i] = shorts[shortsCnt - 1 - i];
	*backwardsCnt = shortsCnt;
	for (L4_Word_t i = 0; i < textCnt; i++)
		upper[i] = text[i] - 'a' + 'A';
	*upperCnt = textCnt;
	return 0;
}

static int32_t do_bulk(void *self, L4_ThreadId_t caller, const void *memory, L4_Word_t memoryCnt, const void *large,
    L4_Word_t largeCnt, const void *words, uint32_t number, void *copy, L4_Word_t *copyCnt,
    uint64_t *length, void *again, L4_Word_t *againCnt)
{
	(void) self, (void) caller;
	if (memoryCnt > *copyCnt || largeCnt > *againCnt)
		return -307;
	memcpy(copy, memory, *copyCnt = memoryCnt);
	memcpy(again, large, *againCnt = largeCnt);
	*length = number;
	for (L4_Word_t i = 0; i < 100; i++)
		*length += ((const uint64_t *) words)[i];
	return 0;
}

static int32_t do_rights(void *self, L4_ThreadId_t caller, uint64_t port, uint32_t type, L4_MapItem_t page,
    L4_MapItem_t *same, uint64_t *other, uint32_t *otherPoly)
{
	(void) self, (void) caller;
	*same = page;
	*other = port + 1;
	*otherPoly = type + 1;
	return 0;
}

static int32_t do_change(void *self, L4_ThreadId_t caller, const void *sent, L4_Word_t sentCnt, void *data,
    L4_Word_t *dataCnt)
{
	(void) self, (void) caller;
	if (sentCnt + 1 > *dataCnt)
		return -307;
	for (L4_Word_t i = 0; i < sentCnt; i++)
		((char *) data)[i] = ((const char *) sent)[sentCnt - 1 - i];
	((char *) data)[sentCnt] = '!';
	*dataCnt = sentCnt + 1;
	return 0;
}

int main(void)
{
	static const struct everything_functions functions = {
		do_numbers, do_nothing, do_hint, do_small, do_bulk, do_rights, do_change
	};
	static uint64_t buffers[3][1000], room[2000];
	const void *strings[3] = { buffers[0], buffers[1], buffers[2] };
	for (;;) {
		L4_LoadBR(0, 1);
		for (int i = 0; i < 3; i++) {
			L4_LoadBR(1 + 2 * i, sizeof buffers[i] << 10);
			L4_LoadBR(2 + 2 * i, (L4_Word_t) buffers[i]);
		}
		if (!L4_ReceiveMessage())
			return 0;
		L4_ThreadId_t caller = { 1 };
		struct mig_l4_message message;
		memcpy(message.MR, message_registers, sizeof message.MR);
		if (everything_serve(&functions, 0, caller, &message, strings, room, sizeof room)) {
			memcpy(message_registers, message.MR, sizeof message.MR);
			L4_SendMessage();
		}
	}
}
