//! Kernel debugger operations (ABI 15.1): an INT3 instruction followed by `cmpb $operation, %al`.

/// Print the character in AL.
pub const PRINT_CHARACTER: u8 = 0x0;
/// Print the NUL-terminated string at RAX.
pub const PRINT_STRING: u8 = 0x1;
/// Toggle whether a key on the console enters the debugger.
pub const TOGGLE_BREAK_IN: u8 = 0x3;
/// Read a character into RAX, -1 if there is none.
pub const READ_CHARACTER_NONBLOCKING: u8 = 0x8;
/// Read a character into RAX, waiting for one.
pub const READ_CHARACTER: u8 = 0xd;
