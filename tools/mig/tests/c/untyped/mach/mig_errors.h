#ifndef _MACH_MIG_ERRORS_H_
#define _MACH_MIG_ERRORS_H_
#include <mach/message.h>
#include <mach/ndr.h>

#define MIG_TYPE_ERROR -300
#define MIG_REPLY_MISMATCH -301
#define MIG_REMOTE_ERROR -302
#define MIG_BAD_ID -303
#define MIG_BAD_ARGUMENTS -304
#define MIG_NO_REPLY -305
#define MIG_EXCEPTION -306
#define MIG_ARRAY_TOO_LARGE -307
#define MIG_SERVER_DIED -308
#define MIG_TRAILER_ERROR -309

#pragma pack(push, 4)
typedef struct {
	mach_msg_header_t Head;
	NDR_record_t NDR;
	kern_return_t RetCode;
} mig_reply_error_t;
#pragma pack(pop)

typedef void (*mig_stub_routine_t)(mach_msg_header_t *, mach_msg_header_t *);
typedef mig_stub_routine_t mig_routine_t;
typedef mig_routine_t (*mig_server_routine_t)(mach_msg_header_t *);
typedef kern_return_t (*mig_impl_routine_t)(void);

struct routine_descriptor {
	mig_impl_routine_t impl_routine;
	mig_stub_routine_t stub_routine;
	unsigned int argc, descr_count;
	void *arg_descr;
	unsigned int max_reply_msg;
};

typedef struct mig_symtab {
	char *ms_routine_name;
	int ms_routine_number;
	void *ms_routine;
} mig_symtab_t;

mach_port_t mig_get_reply_port(void);
void mig_dealloc_reply_port(mach_port_t);
void mig_put_reply_port(mach_port_t);
mach_port_t mig_get_special_reply_port(void);
void mig_dealloc_special_reply_port(mach_port_t);
#endif
