//! The flavors of a thread's state.

use message::Array;

use super::PortPersonality;
use super::call::Answer;
use super::error::INVALID_ARGUMENT;
use super::info::Words;
use crate::machine::{ExecutionContext, Machine, ThreadState};
use crate::thread::Thread;

/// The integer registers.
const THREAD_STATE: u32 = 1;
/// The integer registers, and the segments, of which a 64-bit thread has none that counts.
const REGISTERS_AND_SEGMENTS: u32 = 5;
/// The bases of FS and GS.
const SEGMENT_BASES: u32 = 7;
/// The extended registers.
const EXTENDED: u32 = 8;

/// The words of the structures of fixed size.
const THREAD_STATE_WORDS: usize = 42;
const SEGMENT_BASE_WORDS: usize = 4;
/// The words before the image of the extended registers.
const EXTENDED_HEAD: usize = 4;

/// The selectors of code and stack that all threads have.
const CODE: u64 = 0x2b;
const STACK: u64 = 0x23;

/// The kind of floating-point unit (one with extended state), and of the image (XSAVE).
const EXTENDED_UNIT: u32 = 5;
const XSAVE: u32 = 2;

/// The size in bytes of the structure of the extended registers, with an image of this size.
pub(super) fn extended_size(image: usize) -> usize {
    EXTENDED_HEAD * 4 + image
}

/// `thread_get_state`.
pub(super) async fn get<M: Machine, P: PortPersonality<M>>(
    thread: &Thread<M, P>,
    flavor: u32,
    room: usize,
) -> Answer<Array<u32, 1024>> {
    let state = thread.state().await?;
    let mut words = Words::new();
    let least = match flavor {
        THREAD_STATE | REGISTERS_AND_SEGMENTS => {
            let ThreadState { r8, r9, r10, r11, r12, r13, r14, r15, .. } = state;
            let ThreadState { rdi, rsi, rbp, rsp, rbx, rdx, rcx, rax, rip, rflags, .. } = state;
            for register in [
                r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rsp, rbx, rdx, rcx, rax, rip, CODE,
                rflags, rsp, STACK,
            ] {
                words.long(register);
            }
            THREAD_STATE_WORDS
        }
        SEGMENT_BASES => {
            words.long(state.fs_base).long(state.gs_base);
            SEGMENT_BASE_WORDS
        }
        EXTENDED => {
            let image = thread.machine_thread().extended_state()?;
            words.word(EXTENDED_UNIT).word(1).word(0).word(XSAVE);
            let (whole, _) = image.as_chunks::<4>();
            whole.iter().for_each(|word| {
                words.word(u32::from_le_bytes(*word));
            });
            extended_size(image.len()) / 4
        }
        _ => return Err(INVALID_ARGUMENT),
    };
    words.answer(room, least)
}

/// `thread_set_state`.
pub(super) async fn set<M: Machine, P: PortPersonality<M>>(
    thread: &Thread<M, P>,
    flavor: u32,
    words: &[u32],
) -> Answer {
    let old = thread.state().await?;
    let long = |index: usize| {
        let word = |index| words.get(index).copied().map_or(0, u64::from);
        word(2 * index) | word(2 * index + 1) << 32
    };
    let new = match flavor {
        THREAD_STATE | REGISTERS_AND_SEGMENTS if words.len() >= THREAD_STATE_WORDS => ThreadState {
            r8: long(0),
            r9: long(1),
            r10: long(2),
            r11: long(3),
            r12: long(4),
            r13: long(5),
            r14: long(6),
            r15: long(7),
            rdi: long(8),
            rsi: long(9),
            rbp: long(10),
            // The stack pointer is there twice; the second counts, at index 19.
            rbx: long(12),
            rdx: long(13),
            rcx: long(14),
            rax: long(15),
            rip: long(16),
            rflags: long(18),
            rsp: long(19),
            fs_base: old.fs_base,
            gs_base: old.gs_base,
        },
        SEGMENT_BASES if words.len() >= SEGMENT_BASE_WORDS => {
            ThreadState { fs_base: long(0), gs_base: long(1), ..old }
        }
        EXTENDED if words.len() > EXTENDED_HEAD => {
            let image: alloc::vec::Vec<u8> =
                words[EXTENDED_HEAD..].iter().flat_map(|word| word.to_le_bytes()).collect();
            return Ok(thread.machine_thread().set_extended_state(&image)?);
        }
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok(thread.set_state(&new).await?)
}
