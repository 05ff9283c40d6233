#include "everything.h"
#include <string.h>

#define check(condition) do { if (!(condition)) { \
	fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); exit(1); } } while (0)

int main(void)
{
	L4_ThreadId_t to = { 1 };
	uint64_t sum = 0;
	uint32_t count = 6;
	check(numbers(to, 1, 2, 3, 1ull << 40, &sum, &count) == 0 && sum == (1ull << 40) + 6 && count == 7);
	check(numbers(to, 13, 0, 0, 0, &sum, &count) == -13);
	check(nothing(to) == 0);
	check(hint(to, 7, (const uint8_t *) "a hint", 6) == 0);

	for (unsigned n = 0; n <= 40; n++) {
		static const char text[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmn";
		uint16_t shorts[7] = { 0, 1, 2, 3, 4, 5, 6 }, backwards[7];
		uint32_t five[5] = { 1, 2, 3, 4, 5 };
		uint64_t pair[2] = { n, 2 };
		uint8_t upper[40];
		L4_Word_t back = 7, up = 40;
		check(small(to, (const uint8_t *) text, n, shorts, n % 8, five, (const uint8_t *) "name", 4, pair,
		    backwards, &back, upper, &up) == 0);
		check(pair[0] == 15 && pair[1] == n && back == n % 8 && up == n);
		for (unsigned i = 0; i < back; i++)
			check(backwards[i] == back - 1 - i);
		for (unsigned i = 0; i < up; i++)
			check(upper[i] == text[i] - 'a' + 'A');
	}

	static uint8_t memory[3000], copy[3000], again[2000];
	static uint64_t words[100];
	for (unsigned i = 0; i < 3000; i++)
		memory[i] = i * 7;
	for (unsigned i = 0; i < 100; i++)
		words[i] = i;
	L4_Word_t copied = sizeof copy, repeated = sizeof again;
	uint64_t length = 0;
	check(bulk(to, memory, 3000, memory, 1999, words, 9, copy, &copied, &length, again, &repeated) == 0);
	check(copied == 3000 && length == 4959 && repeated == 1999);
	check(!memcmp(copy, memory, 3000) && !memcmp(again, memory, 1999));
	copied = 10;
	check(bulk(to, memory, 3000, memory, 5, words, 9, copy, &copied, &length, again, &repeated) == -307);

	L4_MapItem_t page = { { 0x4008, 0x10000010 } }, same;
	uint64_t other;
	uint32_t kind;
	check(rights(to, 99, 17, page, &same, &other, &kind) == 0);
	check(same.raw[0] == page.raw[0] && same.raw[1] == page.raw[1] && other == 100 && kind == 18);

	char data[8];
	L4_Word_t bytes = 8;
	check(change(to, "1234", 4, data, &bytes) == 0 && bytes == 5 && !memcmp(data, "4321!", 5));
	return 0;
}
