// The system-call stubs, which user programs execute (K9): each is SYSCALL and RET, at a multiple of 64 bytes in the
// order of syscall::Call. The kernel knows the call by the address to which SYSCALL returns, and nothing else.
//
// MemoryControl has operands in RCX and R11, which SYSCALL destroys: they go to RBP and RDI, which the kernel does not
// need (it knows the UTCB). The caller finds MR0, which the kernel leaves in R9, in RCX.

.section .stubs, "ax"
.balign 64
syscall; ret            // Ipc, Lipc
.balign 64
syscall; ret            // ExchangeRegisters
.balign 64
syscall; ret            // ThreadControl
.balign 64
syscall; ret            // SystemClock
.balign 64
syscall; ret            // ThreadSwitch
.balign 64
syscall; ret            // Schedule
.balign 64
syscall; ret            // Unmap
.balign 64
syscall; ret            // SpaceControl
.balign 64
syscall; ret            // ProcessorControl
.balign 64
memory_control_stub:
mov     rbp, rcx
mov     rdi, r11
.org memory_control_stub + {memory_control_prefix}, 0x90
syscall                 // MemoryControl
mov     rcx, r9
ret
.balign 64
syscall; ret            // SpaceOptions
.balign 64
syscall; ret            // MapControl
.balign 64
syscall; ret            // ThreadState
.balign 64
syscall; ret            // Notify
.balign 4096, 0xcc
.text
