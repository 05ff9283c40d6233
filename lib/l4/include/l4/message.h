/* Messages: tag, typed items, message objects, acceptors, receive buffers (manual: IPC). */
#ifndef L4_MESSAGE_H
#define L4_MESSAGE_H

#include <l4/arch.h>

/* Message tags. */

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t u : 6;
        L4_Word_t t : 6;
        L4_Word_t flags : 4;
        L4_Word_t label : 48;
    } X;
} L4_MsgTag_t;

L4_INLINE L4_MsgTag_t l4_tag(L4_Word_t raw)
{
    L4_MsgTag_t tag;
    tag.raw = raw;
    return tag;
}

#define L4_Niltag (l4_tag(0))

L4_INLINE L4_Bool_t L4_IsMsgTagEqual(L4_MsgTag_t l, L4_MsgTag_t r) { return l.raw == r.raw; }
L4_INLINE L4_Bool_t L4_IsMsgTagNotEqual(L4_MsgTag_t l, L4_MsgTag_t r) { return l.raw != r.raw; }
L4_INLINE L4_Word_t L4_Label(L4_MsgTag_t t) { return t.raw >> 16; }
L4_INLINE L4_Word_t L4_UntypedWords(L4_MsgTag_t t) { return t.raw & 0x3f; }
L4_INLINE L4_Word_t L4_TypedWords(L4_MsgTag_t t) { return t.raw >> 6 & 0x3f; }
L4_INLINE void L4_Set_Label(L4_MsgTag_t *t, L4_Word_t label) { t->raw = (t->raw & 0xffff) | label << 16; }
L4_INLINE L4_MsgTag_t L4_MsgTagAddLabel(L4_MsgTag_t t, L4_Word_t label)
{
    L4_Set_Label(&t, label);
    return t;
}
L4_INLINE L4_MsgTag_t L4_MsgTagAddLabelTo(L4_MsgTag_t *t, L4_Word_t label)
{
    L4_Set_Label(t, label);
    return *t;
}
L4_INLINE L4_MsgTag_t L4_MsgTag(void) { return l4_tag(*l4_utcb()); }
L4_INLINE void L4_Set_MsgTag(L4_MsgTag_t t) { *l4_utcb() = t.raw; }

/* Map and grant items. */

typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t C : 1;
        L4_Word_t __type : 3;
        L4_Word_t __zeros : 6;
        L4_Word_t snd_base : 54;
        L4_Fpage_t snd_fpage;
    } X;
} L4_MapItem_t;

typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t C : 1;
        L4_Word_t __type : 3;
        L4_Word_t __zeros : 6;
        L4_Word_t snd_base : 54;
        L4_Fpage_t snd_fpage;
    } X;
} L4_GrantItem_t;

#define L4_MAP_TYPE 4
#define L4_GRANT_TYPE 5

L4_INLINE L4_Word_t l4_item_type(L4_Word_t first_word) { return first_word >> 1 & 7; }
L4_INLINE L4_Word_t l4_item_word(L4_Word_t base, L4_Word_t type) { return (base & ~(L4_Word_t)0x3ff) | type << 1; }

L4_INLINE L4_MapItem_t L4_MapItem(L4_Fpage_t f, L4_Word_t SndBase)
{
    L4_MapItem_t item;
    item.raw[0] = l4_item_word(SndBase, L4_MAP_TYPE);
    item.raw[1] = f.raw;
    return item;
}
L4_INLINE L4_Bool_t L4_IsMapItem(L4_MapItem_t m) { return l4_item_type(m.raw[0]) == L4_MAP_TYPE; }
L4_INLINE L4_Fpage_t L4_MapItemSndFpage(L4_MapItem_t m) { return l4_fpage(m.raw[1]); }
L4_INLINE L4_Word_t L4_MapItemSndBase(L4_MapItem_t m) { return m.raw[0] & ~(L4_Word_t)0x3ff; }

L4_INLINE L4_GrantItem_t L4_GrantItem(L4_Fpage_t f, L4_Word_t SndBase)
{
    L4_GrantItem_t item;
    item.raw[0] = l4_item_word(SndBase, L4_GRANT_TYPE);
    item.raw[1] = f.raw;
    return item;
}
L4_INLINE L4_Bool_t L4_IsGrantItem(L4_GrantItem_t g) { return l4_item_type(g.raw[0]) == L4_GRANT_TYPE; }
L4_INLINE L4_Fpage_t L4_GrantItemSndFpage(L4_GrantItem_t g) { return l4_fpage(g.raw[1]); }
L4_INLINE L4_Word_t L4_GrantItemSndBase(L4_GrantItem_t g) { return g.raw[0] & ~(L4_Word_t)0x3ff; }

/* String items. A simple string is one of these; a compound string is an array of words that begins
 * like one: each of its descriptors is a word followed by j + 1 pointers, and c says that another
 * descriptor follows. */

typedef union {
    L4_Word_t raw[2];
    struct {
        L4_Word_t C : 1;
        L4_Word_t __type : 3;
        L4_Word_t j : 5;
        L4_Word_t c : 1;
        L4_Word_t string_length : 54;
        union {
            void *string_ptr;
            void *substring_ptr[0];
        } str;
    } X;
} L4_StringItem_t;

/* A string item of any length as words: these may alias, the caller's object can be a union or an
 * array. */
typedef L4_Word_t __attribute__((may_alias)) l4_item_words_t;

L4_INLINE L4_StringItem_t L4_StringItem(L4_Word_t size, const void *address)
{
    L4_StringItem_t item;
    item.raw[0] = size << 10;
    item.raw[1] = (L4_Word_t)address;
    return item;
}
L4_INLINE L4_Bool_t L4_IsStringItem(const L4_StringItem_t *s) { return (s->raw[0] & 8) == 0; }
L4_INLINE L4_Bool_t L4_CompoundString(const L4_StringItem_t *s) { return (s->raw[0] & 1 << 9) != 0; }
L4_INLINE L4_Word_t L4_Substrings(const L4_StringItem_t *s) { return (s->raw[0] >> 4 & 0x1f) + 1; }
/* Substring `n` of the first descriptor, counted from 1. */
L4_INLINE void *L4_Substring(const L4_StringItem_t *s, L4_Word_t n)
{
    return (void *)((const l4_item_words_t *)s)[n];
}

/* Words of the descriptor that begins at `word`. */
L4_INLINE L4_Word_t l4_descriptor_words(const l4_item_words_t *word) { return (*word >> 4 & 0x1f) + 2; }
/* The last descriptor of the string that begins at `word`. */
L4_INLINE l4_item_words_t *l4_last_descriptor(l4_item_words_t *word)
{
    while (*word & 1 << 9)
        word += l4_descriptor_words(word);
    return word;
}
/* Words of the whole string that begins at `word`. */
L4_INLINE L4_Word_t l4_string_words(const l4_item_words_t *word)
{
    const l4_item_words_t *last = l4_last_descriptor((l4_item_words_t *)word);
    return (L4_Word_t)(last - word) + l4_descriptor_words(last);
}
L4_INLINE L4_Word_t l4_copy_string(l4_item_words_t *to, const l4_item_words_t *from)
{
    L4_Word_t i, words = l4_string_words(from);
    for (i = 0; i < words; i++)
        to[i] = from[i];
    return words;
}

/* Appends another descriptor (or string) to a string, which must have room for it after its
 * end. */
L4_INLINE L4_StringItem_t *L4_AddSubstringTo(L4_StringItem_t *dest, L4_StringItem_t *substr)
{
    l4_item_words_t *last = l4_last_descriptor((l4_item_words_t *)dest);
    l4_item_words_t *end = last + l4_descriptor_words(last);
    (void)l4_copy_string(end, (l4_item_words_t *)substr);
    *last |= 1 << 9;
    return (L4_StringItem_t *)end;
}
/* Appends a substring of the same length to the last descriptor of a string. */
L4_INLINE L4_StringItem_t *L4_AddSubstringAddressTo(L4_StringItem_t *dest, void *substring_addr)
{
    l4_item_words_t *last = l4_last_descriptor((l4_item_words_t *)dest);
    last[l4_descriptor_words(last)] = (L4_Word_t)substring_addr;
    *last += 1 << 4;
    return dest;
}

/* Cache allocation hints: bits 1 and 2 of a string item. This kernel ignores them. */

typedef struct {
    L4_Word_t raw;
} L4_CacheAllocationHint_t;

L4_INLINE L4_CacheAllocationHint_t l4_cache_hint(L4_Word_t raw)
{
    L4_CacheAllocationHint_t hint;
    hint.raw = raw & 6;
    return hint;
}

#define L4_UseDefaultCacheAllocation (l4_cache_hint(0))

L4_INLINE L4_CacheAllocationHint_t L4_CacheAllocationHint(L4_StringItem_t s) { return l4_cache_hint(s.raw[0]); }
L4_INLINE L4_Bool_t L4_IsCacheAllocationHintEqual(L4_CacheAllocationHint_t l, L4_CacheAllocationHint_t r)
{
    return (l.raw & 6) == (r.raw & 6);
}
L4_INLINE L4_Bool_t L4_IsCacheAllocationHintNotEqual(L4_CacheAllocationHint_t l, L4_CacheAllocationHint_t r)
{
    return (l.raw & 6) != (r.raw & 6);
}
L4_INLINE L4_StringItem_t L4_AddCacheAllocationHint(L4_StringItem_t dest, L4_CacheAllocationHint_t h)
{
    dest.raw[0] |= h.raw & 6;
    return dest;
}
L4_INLINE L4_StringItem_t L4_AddCacheAllocationHintTo(L4_StringItem_t *dest, L4_CacheAllocationHint_t h)
{
    return *dest = L4_AddCacheAllocationHint(*dest, h);
}

/* Message objects. */

typedef union {
    L4_Word_t raw[L4_NUM_MRS];
    L4_Word_t msg[L4_NUM_MRS];
    L4_MsgTag_t tag;
} L4_Msg_t;

L4_INLINE L4_MsgTag_t L4_MsgMsgTag(const L4_Msg_t *msg) { return msg->tag; }
L4_INLINE void L4_Set_MsgMsgTag(L4_Msg_t *msg, L4_MsgTag_t t) { msg->tag = t; }
L4_INLINE L4_Word_t L4_MsgLabel(const L4_Msg_t *msg) { return L4_Label(msg->tag); }
L4_INLINE void L4_Set_MsgLabel(L4_Msg_t *msg, L4_Word_t label) { L4_Set_Label(&msg->tag, label); }
L4_INLINE void L4_MsgClear(L4_Msg_t *msg) { msg->raw[0] = 0; }

/* Index of the first typed word of a message, and of the first after it. */
L4_INLINE L4_Word_t l4_typed_index(const L4_Msg_t *msg) { return 1 + L4_UntypedWords(msg->tag); }
L4_INLINE L4_Word_t l4_end_index(const L4_Msg_t *msg) { return l4_typed_index(msg) + L4_TypedWords(msg->tag); }

L4_INLINE void L4_MsgLoad(L4_Msg_t *msg) { L4_LoadMRs(0, (int)l4_end_index(msg), msg->raw); }
L4_INLINE void L4_MsgStore(L4_MsgTag_t t, L4_Msg_t *msg)
{
    msg->tag = t;
    L4_StoreMRs(1, (int)l4_end_index(msg) - 1, msg->raw + 1);
}

L4_INLINE void L4_MsgPut(L4_Msg_t *msg, L4_Word_t label, int u, L4_Word_t *Untyped, int t, void *Items)
{
    const l4_item_words_t *items = (const l4_item_words_t *)Items;
    int i;
    for (i = 0; i < u; i++)
        msg->raw[1 + i] = Untyped[i];
    for (i = 0; i < t; i++)
        msg->raw[1 + u + i] = items[i];
    msg->tag = l4_tag(label << 16 | (L4_Word_t)t << 6 | (L4_Word_t)u);
}
L4_INLINE void L4_MsgGet(const L4_Msg_t *msg, L4_Word_t *Untyped, void *Items)
{
    l4_item_words_t *items = (l4_item_words_t *)Items;
    L4_Word_t i;
    for (i = 1; i < l4_typed_index(msg); i++)
        *Untyped++ = msg->raw[i];
    for (; i < l4_end_index(msg); i++)
        *items++ = msg->raw[i];
}

/* Appends an untyped word, before the typed items that are already there. */
L4_INLINE void L4_MsgAppendWord(L4_Msg_t *msg, L4_Word_t w)
{
    L4_Word_t i, at = l4_typed_index(msg);
    for (i = l4_end_index(msg); i > at; i--)
        msg->raw[i] = msg->raw[i - 1];
    msg->raw[at] = w;
    msg->tag.raw += 1;
}
L4_INLINE void L4_MsgPutWord(L4_Msg_t *msg, L4_Word_t u, L4_Word_t w) { msg->raw[1 + u] = w; }
L4_INLINE L4_Word_t L4_MsgWord(L4_Msg_t *msg, L4_Word_t u) { return msg->raw[1 + u]; }
L4_INLINE void L4_MsgGetWord(L4_Msg_t *msg, L4_Word_t u, L4_Word_t *w) { *w = L4_MsgWord(msg, u); }

/* Places, reads and appends the two words of an item at typed word `t`. */
L4_INLINE void l4_put_pair(L4_Msg_t *msg, L4_Word_t t, const L4_Word_t *pair)
{
    L4_Word_t at = l4_typed_index(msg) + t;
    msg->raw[at] = pair[0];
    msg->raw[at + 1] = pair[1];
}
L4_INLINE L4_Word_t l4_get_pair(const L4_Msg_t *msg, L4_Word_t t, L4_Word_t *pair)
{
    L4_Word_t at = l4_typed_index(msg) + t;
    pair[0] = msg->raw[at];
    pair[1] = msg->raw[at + 1];
    return 2;
}
L4_INLINE void l4_append_pair(L4_Msg_t *msg, const L4_Word_t *pair)
{
    l4_put_pair(msg, L4_TypedWords(msg->tag), pair);
    msg->tag.raw += 2 << 6;
}
/* The string item `s` without c (continuation) and with one substring. */
L4_INLINE L4_StringItem_t l4_simple_string(L4_StringItem_t s)
{
    s.raw[0] &= ~(L4_Word_t)0x3f0;
    return s;
}

L4_INLINE void L4_MsgAppendMapItem(L4_Msg_t *msg, L4_MapItem_t m) { l4_append_pair(msg, m.raw); }
L4_INLINE void L4_MsgAppendGrantItem(L4_Msg_t *msg, L4_GrantItem_t g) { l4_append_pair(msg, g.raw); }
L4_INLINE void L4_MsgAppendSimpleStringItem(L4_Msg_t *msg, L4_StringItem_t s)
{
    s = l4_simple_string(s);
    l4_append_pair(msg, s.raw);
}
L4_INLINE void L4_MsgAppendStringItem(L4_Msg_t *msg, L4_StringItem_t *s)
{
    l4_item_words_t *end = (l4_item_words_t *)msg->raw + l4_end_index(msg);
    msg->tag.raw += l4_copy_string(end, (l4_item_words_t *)s) << 6;
}
L4_INLINE void L4_MsgPutMapItem(L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t m) { l4_put_pair(msg, t, m.raw); }
L4_INLINE void L4_MsgPutGrantItem(L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t g) { l4_put_pair(msg, t, g.raw); }
L4_INLINE void L4_MsgPutSimpleStringItem(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t s)
{
    s = l4_simple_string(s);
    l4_put_pair(msg, t, s.raw);
}
L4_INLINE void L4_MsgPutStringItem(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t *s)
{
    (void)l4_copy_string((l4_item_words_t *)msg->raw + l4_typed_index(msg) + t, (l4_item_words_t *)s);
}
/* These return the number of typed words that the item has. */
L4_INLINE L4_Word_t L4_MsgGetMapItem(L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t *m) { return l4_get_pair(msg, t, m->raw); }
L4_INLINE L4_Word_t L4_MsgGetGrantItem(L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t *g)
{
    return l4_get_pair(msg, t, g->raw);
}
L4_INLINE L4_Word_t L4_MsgGetStringItem(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t *s)
{
    return l4_copy_string((l4_item_words_t *)s, (l4_item_words_t *)msg->raw + l4_typed_index(msg) + t);
}

/* Acceptors. */

typedef union {
    L4_Word_t raw;
    struct {
        L4_Word_t s : 1;
        L4_Word_t c : 1;
        L4_Word_t __zeros : 2;
        L4_Word_t RcvWindow : 60;
    } X;
} L4_Acceptor_t;

L4_INLINE L4_Acceptor_t l4_acceptor(L4_Word_t raw)
{
    L4_Acceptor_t a;
    a.raw = raw;
    return a;
}

#define L4_UntypedWordsAcceptor (l4_acceptor(0))
#define L4_StringItemsAcceptor (l4_acceptor(1))

#define L4_WINDOW_BITS (~(L4_Word_t)0xf)

L4_INLINE L4_Acceptor_t L4_MapGrantItems(L4_Fpage_t RcvWindow) { return l4_acceptor(RcvWindow.raw & L4_WINDOW_BITS); }
L4_INLINE L4_Bool_t L4_HasStringItems(L4_Acceptor_t a) { return (a.raw & 1) != 0; }
L4_INLINE L4_Bool_t L4_HasMapGrantItems(L4_Acceptor_t a) { return (a.raw & L4_WINDOW_BITS) != 0; }
L4_INLINE L4_Fpage_t L4_RcvWindow(L4_Acceptor_t a) { return l4_fpage(a.raw & L4_WINDOW_BITS); }
/* The acceptor of what either accepts; of two windows that of `r`. */
L4_INLINE L4_Acceptor_t L4_AddAcceptor(L4_Acceptor_t l, L4_Acceptor_t r)
{
    L4_Word_t window = (L4_HasMapGrantItems(r) ? r.raw : l.raw) & L4_WINDOW_BITS;
    return l4_acceptor(window | (l.raw & ~L4_WINDOW_BITS) | (r.raw & ~L4_WINDOW_BITS));
}
L4_INLINE L4_Acceptor_t L4_AddAcceptorTo(L4_Acceptor_t l, L4_Acceptor_t r) { return L4_AddAcceptor(l, r); }
/* The acceptor of what `l` accepts, without the kinds of items that `r` accepts. */
L4_INLINE L4_Acceptor_t L4_RemoveAcceptor(L4_Acceptor_t l, L4_Acceptor_t r)
{
    L4_Word_t gone = (r.raw & ~L4_WINDOW_BITS) | (L4_HasMapGrantItems(r) ? L4_WINDOW_BITS : 0);
    return l4_acceptor(l.raw & ~gone);
}
L4_INLINE L4_Acceptor_t L4_RemoveAcceptorFrom(L4_Acceptor_t l, L4_Acceptor_t r) { return L4_RemoveAcceptor(l, r); }
L4_INLINE void L4_Accept(L4_Acceptor_t a) { L4_LoadBR(0, a.raw); }
L4_INLINE L4_Acceptor_t L4_Accepted(void)
{
    L4_Acceptor_t a;
    L4_StoreBR(0, &a.raw);
    return a;
}

/* Receive buffers: the words of BR1 and on. Bit C of a descriptor chains the next buffer. A cleared
 * buffer is told from one that holds a string of length 0 by its second word: no buffer is at
 * address 0. */

typedef union {
    L4_Word_t raw[L4_NUM_BRS - 1];
    L4_StringItem_t string[0];
} L4_MsgBuffer_t;

L4_INLINE void L4_MsgBufferClear(L4_MsgBuffer_t *b) { b->raw[0] = b->raw[1] = 0; }

/* The place for another buffer, chained to the last. */
L4_INLINE l4_item_words_t *l4_next_buffer(L4_MsgBuffer_t *b)
{
    l4_item_words_t *string = (l4_item_words_t *)b->raw;
    if (string[0] == 0 && string[1] == 0)
        return string;
    for (;;) {
        l4_item_words_t *next = string + l4_string_words(string);
        if (!(*string & 1)) {
            *string |= 1;
            return next;
        }
        string = next;
    }
}
L4_INLINE void L4_MsgBufferAppendRcvString(L4_MsgBuffer_t *b, L4_StringItem_t *s)
{
    l4_item_words_t *place = l4_next_buffer(b);
    (void)l4_copy_string(place, (l4_item_words_t *)s);
    *place &= ~(L4_Word_t)1;
}
L4_INLINE void L4_MsgBufferAppendSimpleRcvString(L4_MsgBuffer_t *b, L4_StringItem_t s)
{
    s = l4_simple_string(s);
    L4_MsgBufferAppendRcvString(b, &s);
}
L4_INLINE void L4_AcceptStrings(L4_Acceptor_t a, L4_MsgBuffer_t *b)
{
    const l4_item_words_t *string = (const l4_item_words_t *)b->raw;
    L4_Word_t more, i = 1;
    L4_LoadBR(0, a.raw);
    do {
        L4_Word_t words = l4_string_words(string), w;
        more = *string & 1;
        for (w = 0; w < words && i < L4_NUM_BRS; w++)
            L4_LoadBR((int)i++, string[w]);
        string += words;
    } while (more && i < L4_NUM_BRS);
}

#ifdef __cplusplus
static inline L4_Bool_t operator==(const L4_MsgTag_t &l, const L4_MsgTag_t &r) { return l.raw == r.raw; }
static inline L4_Bool_t operator!=(const L4_MsgTag_t &l, const L4_MsgTag_t &r) { return l.raw != r.raw; }
static inline L4_MsgTag_t operator+(const L4_MsgTag_t &t, L4_Word_t label) { return L4_MsgTagAddLabel(t, label); }
static inline L4_MsgTag_t operator+=(L4_MsgTag_t &t, L4_Word_t label) { return L4_MsgTagAddLabelTo(&t, label); }

static inline L4_Bool_t L4_MapItem(L4_MapItem_t m) { return L4_IsMapItem(m); }
static inline L4_Fpage_t L4_SndFpage(L4_MapItem_t m) { return L4_MapItemSndFpage(m); }
static inline L4_Word_t L4_SndBase(L4_MapItem_t m) { return L4_MapItemSndBase(m); }
static inline L4_Bool_t L4_GrantItem(L4_GrantItem_t g) { return L4_IsGrantItem(g); }
static inline L4_Fpage_t L4_SndFpage(L4_GrantItem_t g) { return L4_GrantItemSndFpage(g); }
static inline L4_Word_t L4_SndBase(L4_GrantItem_t g) { return L4_GrantItemSndBase(g); }
static inline L4_Bool_t L4_StringItem(const L4_StringItem_t *s) { return L4_IsStringItem(s); }
static inline L4_StringItem_t *operator+=(L4_StringItem_t &dest, L4_StringItem_t &substring)
{
    (void)L4_AddSubstringTo(&dest, &substring);
    return &dest;
}
static inline L4_StringItem_t *operator+=(L4_StringItem_t &dest, void *substring_addr)
{
    return L4_AddSubstringAddressTo(&dest, substring_addr);
}

static inline L4_Bool_t operator==(const L4_CacheAllocationHint_t &l, const L4_CacheAllocationHint_t &r)
{
    return L4_IsCacheAllocationHintEqual(l, r);
}
static inline L4_Bool_t operator!=(const L4_CacheAllocationHint_t &l, const L4_CacheAllocationHint_t &r)
{
    return L4_IsCacheAllocationHintNotEqual(l, r);
}
static inline L4_StringItem_t operator+(const L4_StringItem_t &s, const L4_CacheAllocationHint_t &h)
{
    return L4_AddCacheAllocationHint(s, h);
}
static inline L4_StringItem_t operator+=(L4_StringItem_t &s, const L4_CacheAllocationHint_t &h)
{
    return L4_AddCacheAllocationHintTo(&s, h);
}

static inline void L4_Put(L4_Msg_t *msg, L4_Word_t label, int u, L4_Word_t *Untyped, int t, void *Items)
{
    L4_MsgPut(msg, label, u, Untyped, t, Items);
}
static inline void L4_Put(L4_Msg_t *msg, L4_Word_t u, L4_Word_t w) { L4_MsgPutWord(msg, u, w); }
static inline void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t m) { L4_MsgPutMapItem(msg, t, m); }
static inline void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t g) { L4_MsgPutGrantItem(msg, t, g); }
static inline void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t s) { L4_MsgPutSimpleStringItem(msg, t, s); }
static inline void L4_Put(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t *s) { L4_MsgPutStringItem(msg, t, s); }
static inline void L4_Get(const L4_Msg_t *msg, L4_Word_t *Untyped, void *Items) { L4_MsgGet(msg, Untyped, Items); }
static inline L4_Word_t L4_Get(L4_Msg_t *msg, L4_Word_t u) { return L4_MsgWord(msg, u); }
static inline void L4_Get(L4_Msg_t *msg, L4_Word_t u, L4_Word_t *w) { L4_MsgGetWord(msg, u, w); }
static inline L4_Word_t L4_Get(L4_Msg_t *msg, L4_Word_t t, L4_MapItem_t *m) { return L4_MsgGetMapItem(msg, t, m); }
static inline L4_Word_t L4_Get(L4_Msg_t *msg, L4_Word_t t, L4_GrantItem_t *g)
{
    return L4_MsgGetGrantItem(msg, t, g);
}
static inline L4_Word_t L4_Get(L4_Msg_t *msg, L4_Word_t t, L4_StringItem_t *s)
{
    return L4_MsgGetStringItem(msg, t, s);
}
static inline void L4_Append(L4_Msg_t *msg, L4_Word_t w) { L4_MsgAppendWord(msg, w); }
static inline void L4_Append(L4_Msg_t *msg, int w) { L4_MsgAppendWord(msg, (L4_Word_t)w); }
static inline void L4_Append(L4_Msg_t *msg, L4_MapItem_t m) { L4_MsgAppendMapItem(msg, m); }
static inline void L4_Append(L4_Msg_t *msg, L4_GrantItem_t g) { L4_MsgAppendGrantItem(msg, g); }
static inline void L4_Append(L4_Msg_t *msg, L4_StringItem_t s) { L4_MsgAppendSimpleStringItem(msg, s); }
static inline void L4_Append(L4_Msg_t *msg, L4_StringItem_t *s) { L4_MsgAppendStringItem(msg, s); }
static inline L4_MsgTag_t L4_MsgTag(const L4_Msg_t *msg) { return L4_MsgMsgTag(msg); }
static inline void L4_Set_MsgTag(L4_Msg_t *msg, L4_MsgTag_t t) { L4_Set_MsgMsgTag(msg, t); }
static inline L4_Word_t L4_Label(const L4_Msg_t *msg) { return L4_MsgLabel(msg); }
static inline void L4_Set_Label(L4_Msg_t *msg, L4_Word_t label) { L4_Set_MsgLabel(msg, label); }
static inline void L4_Load(L4_Msg_t *msg) { L4_MsgLoad(msg); }
static inline void L4_Store(L4_MsgTag_t t, L4_Msg_t *msg) { L4_MsgStore(t, msg); }
static inline void L4_Clear(L4_Msg_t *msg) { L4_MsgClear(msg); }

static inline L4_Acceptor_t operator+(const L4_Acceptor_t &l, const L4_Acceptor_t &r) { return L4_AddAcceptor(l, r); }
static inline L4_Acceptor_t operator-(const L4_Acceptor_t &l, const L4_Acceptor_t &r)
{
    return L4_RemoveAcceptor(l, r);
}
static inline L4_Acceptor_t operator+=(L4_Acceptor_t &l, const L4_Acceptor_t &r) { return l = l + r; }
static inline L4_Acceptor_t operator-=(L4_Acceptor_t &l, const L4_Acceptor_t &r) { return l = l - r; }
static inline L4_Bool_t L4_StringItems(L4_Acceptor_t a) { return L4_HasStringItems(a); }
static inline L4_Bool_t L4_MapGrantItems(L4_Acceptor_t a) { return L4_HasMapGrantItems(a); }
static inline void L4_Accept(L4_Acceptor_t a, L4_MsgBuffer_t *b) { L4_AcceptStrings(a, b); }
static inline void L4_Clear(L4_MsgBuffer_t *b) { L4_MsgBufferClear(b); }
static inline void L4_Append(L4_MsgBuffer_t *b, L4_StringItem_t s) { L4_MsgBufferAppendSimpleRcvString(b, s); }
static inline void L4_Append(L4_MsgBuffer_t *b, L4_StringItem_t *s) { L4_MsgBufferAppendRcvString(b, s); }
#endif

#endif
