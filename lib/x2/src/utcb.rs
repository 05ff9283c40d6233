//! The user-level thread control block (ABI 7): 1024 bytes, 1024-aligned. Words are numbered
//! relative to MR0, which stands in the middle; its address is the *UTCB pointer* and the local
//! thread id.

/// Size of a UTCB in bytes.
pub const SIZE: u64 = 1024;
/// Alignment of a UTCB.
pub const ALIGN: u64 = 1024;
/// Bytes from the base of the block (the location given to ThreadControl) to MR0.
pub const MR0_OFFSET: u64 = 512;

/// Word: kernel-reserved in this implementation: the UTCB pointer, where `%gs:0` finds it.
pub const SELF_POINTER: isize = -63;
/// Word: global id of the thread.
pub const MY_GLOBAL_ID: isize = -15;
/// Word: number of the processor that the thread runs on.
pub const PROCESSOR_NUMBER: isize = -14;
/// Word: user-defined handle.
pub const USER_DEFINED_HANDLE: isize = -13;
/// Word: pager.
pub const PAGER: isize = -12;
/// Word: exception handler.
pub const EXCEPTION_HANDLER: isize = -11;
/// Word: preemption flags in byte 0, coprocessor flags in byte 1.
pub const FLAGS: isize = -10;
/// Word: error of the last failed call.
pub const ERROR_CODE: isize = -9;
/// Word: transfer timeouts, laid out as [`crate::Timeouts`].
pub const XFER_TIMEOUTS: isize = -8;
/// Word: receiver that a redirected message was meant for.
pub const INTENDED_RECEIVER: isize = -7;
/// Word: originator of a message sent with P; the same word as [`ACTUAL_SENDER`].
pub const VIRTUAL_SENDER: isize = -6;
/// Word: real sender of a received message with P.
pub const ACTUAL_SENDER: isize = -6;
/// Word: free for the user.
pub const THREAD_WORD_1: isize = -5;
/// Word: free for the user.
pub const THREAD_WORD_0: isize = -4;

/// Word of buffer register `index` (0..=32).
pub const fn buffer_register(index: usize) -> isize {
    -16 - index as isize
}

/// Word of message register `index` (0..=63).
pub const fn message_register(index: usize) -> isize {
    index as isize
}

/// Index of `word` in the block seen as an array of 128 words from its base.
pub const fn word_index(word: isize) -> usize {
    (word + MR0_OFFSET as isize / 8) as usize
}

/// Bytes from the base of the block to `word`.
pub const fn byte_offset(word: isize) -> u64 {
    word_index(word) as u64 * 8
}

/// Preemption flags: byte 0 of word [`FLAGS`] (X.2 rule 4.2).
pub mod preempt_flags {
    /// s: signal preemptions.
    pub const SIGNAL: u8 = 1 << 5;
    /// d: delay preemptions.
    pub const DELAY: u8 = 1 << 6;
    /// I: a preemption is pending.
    pub const PENDING: u8 = 1 << 7;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules: ABI 7.
    #[test]
    fn byte_offsets_of_the_block() {
        assert_eq!(byte_offset(SELF_POINTER), 8);
        assert_eq!(byte_offset(buffer_register(32)), 128);
        assert_eq!(byte_offset(buffer_register(0)), 384);
        assert_eq!(byte_offset(MY_GLOBAL_ID), 392);
        assert_eq!(byte_offset(FLAGS), 432);
        assert_eq!(byte_offset(ERROR_CODE), 440);
        assert_eq!(byte_offset(VIRTUAL_SENDER), 464);
        assert_eq!(byte_offset(THREAD_WORD_0), 480);
        assert_eq!(byte_offset(message_register(0)), MR0_OFFSET);
        assert_eq!(byte_offset(message_register(63)) + 8, SIZE);
    }
}
