// The system-call stubs, which user programs execute (K9): each is SYSCALL and RET, at a multiple
// of STUB_SPACING in the order of syscall::Call. The kernel knows the call by the address to which
// SYSCALL returns, and nothing else.
//
// MemoryControl has operands in RCX and R11, which SYSCALL destroys: they go to RBP and RDI, which
// the kernel does not need (it knows the UTCB). The caller finds MR0, which the kernel leaves in
// R9, in RCX.

.section .stubs, "ax"
.balign {spacing}
syscall; ret            // Ipc, Lipc
.balign {spacing}
syscall; ret            // ExchangeRegisters
.balign {spacing}
syscall; ret            // ThreadControl
.balign {spacing}
syscall; ret            // SystemClock
.balign {spacing}
syscall; ret            // ThreadSwitch
.balign {spacing}
syscall; ret            // Schedule
.balign {spacing}
syscall; ret            // Unmap
.balign {spacing}
syscall; ret            // SpaceControl
.balign {spacing}
syscall; ret            // ProcessorControl
.balign {spacing}
memory_control_stub:
mov     rbp, rcx
mov     rdi, r11
.org memory_control_stub + {memory_control_prefix}, 0x90
syscall                 // MemoryControl
mov     rcx, r9
ret
.balign {spacing}
syscall; ret            // SpaceOptions
.balign {spacing}
syscall; ret            // MapControl
.balign {spacing}
syscall; ret            // ThreadState
.balign {spacing}
syscall; ret            // Notify
.balign 4096, 0xcc
.text
