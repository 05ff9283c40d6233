#ifndef _MACH_NDR_H_
#define _MACH_NDR_H_
typedef struct {
	unsigned char mig_vers, if_vers, reserved1, mig_encoding, int_rep, char_rep, float_rep, reserved2;
} NDR_record_t;
extern NDR_record_t NDR_record;
#endif
