/* The errors of generated stubs, and the replies of servers. */
#ifndef MACH_MIG_ERRORS_H
#define MACH_MIG_ERRORS_H

#include <mach/message.h>

/* The beginning of each reply, and all of one with an error. */
typedef struct {
    mach_msg_header_t Head;
    mach_msg_type_t RetCodeType;
    kern_return_t RetCode;
} mig_reply_header_t;

/* What carries out one request. */
typedef void (*mig_routine_t)(mach_msg_header_t *request, mach_msg_header_t *reply);

#define MIG_TYPE_ERROR -300
#define MIG_REPLY_MISMATCH -301
#define MIG_REMOTE_ERROR -302
#define MIG_BAD_ID -303
#define MIG_BAD_ARGUMENTS -304
#define MIG_NO_REPLY -305
#define MIG_EXCEPTION -306
#define MIG_ARRAY_TOO_LARGE -307
#define MIG_SERVER_DIED -308
#define MIG_DESTROY_REQUEST -309

#endif
