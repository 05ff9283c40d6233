//! Labels and message layouts of the kernel protocols and of sigma0 (ABI 13, 14; X.2 rules
//! 12.1-12.9).
//!
//! A kernel label is a small negative number in bits 4..=47 of the label field; its low four bits
//! say more.

use crate::{Fpage, MessageTag, Rights};

/// Label of the interrupt message.
pub const INTERRUPT: i64 = -1;
/// Label of the page-fault message.
pub const PAGE_FAULT: i64 = -2;
/// Label of the preemption fault and of the total-quantum message.
pub const PREEMPTION: i64 = -3;
/// Label of the preemption exception, which is a system exception.
pub const SYSTEM_EXCEPTION: i64 = -4;
/// Label of every processor exception.
pub const ARCHITECTURE_EXCEPTION: i64 = -5;
/// Label of a request to sigma0.
pub const SIGMA0_RPC: i64 = -6;
/// Label of the IO page-fault message.
pub const IO_PAGE_FAULT: i64 = -8;
/// Label of sigma0's extended requests.
pub const SIGMA0_EXTENDED: i64 = -1001;

/// The label field of `protocol` with `low` (0..=15) in its low four bits.
pub const fn label(protocol: i64, low: u64) -> u64 {
    ((protocol << 4) as u64 | low & 0xf) & 0xffff_ffff_ffff
}

/// The protocol of a received tag: its label without the low four bits.
pub const fn of(tag: MessageTag) -> i64 {
    tag.signed_label() >> 4
}

/// Tag of an interrupt message.
pub const INTERRUPT_TAG: MessageTag = MessageTag::new(label(INTERRUPT, 0), 0, 0);

/// Tag of a page-fault message for the faulting `access`; MR1 = address, MR2 = IP.
pub const fn page_fault_tag(access: Rights) -> MessageTag {
    MessageTag::new(label(PAGE_FAULT, access.bits()), 2, 0)
}

/// Tag of an IO page-fault message; MR1 = IO fpage, MR2 = IP.
pub const IO_PAGE_FAULT_TAG: MessageTag =
    MessageTag::new(label(IO_PAGE_FAULT, Rights::READ_WRITE.bits()), 2, 0);

/// Tag of a preemption fault and of a total-quantum message; MR1 = clock, MR2 = 0.
pub const PREEMPTION_TAG: MessageTag = MessageTag::new(label(PREEMPTION, 0), 2, 0);

/// The faulting access in the tag of a page-fault message.
pub const fn fault_access(tag: MessageTag) -> Rights {
    Rights::from_bits(tag.label())
}

/// The exception message: message registers 1 and on carry the registers in this order.
pub mod exception {
    use super::{ARCHITECTURE_EXCEPTION, MessageTag, SYSTEM_EXCEPTION, label};

    /// Untyped words of the message.
    pub const WORDS: usize = 19;
    /// Untyped words when the error code is delivered too (a boot option).
    pub const WORDS_WITH_ERROR_CODE: usize = 20;
    /// Untyped words that a reply must have: everything up to RFLAGS.
    pub const REPLY_WORDS: usize = 18;
    /// Tag of the message for a processor exception.
    pub const TAG: MessageTag = MessageTag::new(label(ARCHITECTURE_EXCEPTION, 0), WORDS, 0);
    /// Tag of the preemption exception (X.2 rule 4.10).
    pub const PREEMPTION_TAG: MessageTag = MessageTag::new(label(SYSTEM_EXCEPTION, 0), WORDS, 0);
    /// Exception number of the preemption exception (X.2 rule 4.10).
    pub const PREEMPTION_NUMBER: u64 = !3;

    /// Message register: RIP.
    pub const RIP: usize = 1;
    /// Message register: RBX.
    pub const RBX: usize = 2;
    /// Message register: R10.
    pub const R10: usize = 3;
    /// Message register: R12.
    pub const R12: usize = 4;
    /// Message register: R13.
    pub const R13: usize = 5;
    /// Message register: R14.
    pub const R14: usize = 6;
    /// Message register: R15.
    pub const R15: usize = 7;
    /// Message register: RAX.
    pub const RAX: usize = 8;
    /// Message register: RCX.
    pub const RCX: usize = 9;
    /// Message register: RDX.
    pub const RDX: usize = 10;
    /// Message register: RSI.
    pub const RSI: usize = 11;
    /// Message register: RDI.
    pub const RDI: usize = 12;
    /// Message register: RBP.
    pub const RBP: usize = 13;
    /// Message register: R8.
    pub const R8: usize = 14;
    /// Message register: R9.
    pub const R9: usize = 15;
    /// Message register: R11.
    pub const R11: usize = 16;
    /// Message register: RSP.
    pub const RSP: usize = 17;
    /// Message register: RFLAGS.
    pub const RFLAGS: usize = 18;
    /// Message register: exception number (the processor's vector).
    pub const NUMBER: usize = 19;
    /// Message register: error code, when delivered.
    pub const ERROR_CODE: usize = 20;
}

/// Thread start (X.2 rule 5.12): MR1 = IP, MR2 = SP.
pub mod start {
    /// Untyped words of the message.
    pub const WORDS: usize = 2;
    /// Message register: instruction pointer.
    pub const IP: usize = 1;
    /// Message register: stack pointer.
    pub const SP: usize = 2;
}

/// sigma0's protocol (ABI 14).
pub mod sigma0 {
    use super::{Fpage, MessageTag, SIGMA0_RPC, label};

    /// Tag of a request: MR1 = fpage, MR2 = attributes.
    pub const REQUEST_TAG: MessageTag = MessageTag::new(label(SIGMA0_RPC, 0), 2, 0);
    /// Base field of a request for any region of a size.
    pub const ANY_BASE: u64 = !0x3ff;
    /// Bit 3 of MR1: MR3 has the upper half of the address.
    pub const EXTENDED: u64 = 1 << 3;

    /// The fpage that asks for any conventional region of 2^`size_log2` bytes.
    pub const fn any(size_log2: u32) -> Fpage {
        Fpage::from_raw(ANY_BASE | (size_log2 as u64 & 0x3f) << 4)
    }

    /// Whether `fpage` asks for any region of its size.
    pub const fn is_any(fpage: Fpage) -> bool {
        fpage.raw() & ANY_BASE == ANY_BASE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Raw tags of ABI 13 and X.2 rule 12.8.
    /// Rules: ABI 13, 12.1.
    #[test]
    fn raw_tags() {
        assert_eq!(page_fault_tag(Rights::READ).raw(), 0xffff_ffff_ffe4_0002);
        assert_eq!(page_fault_tag(Rights::WRITE).raw(), 0xffff_ffff_ffe2_0002);
        assert_eq!(INTERRUPT_TAG.raw(), 0xffff_ffff_fff0_0000);
        assert_eq!(exception::TAG.raw(), 0xffff_ffff_ffb0_0013);
        assert_eq!(IO_PAGE_FAULT_TAG.raw(), 0xffff_ffff_ff86_0002);
        assert_eq!(sigma0::REQUEST_TAG.raw(), 0xffff_ffff_ffa0_0002);
    }

    #[test]
    fn protocols_of_tags() {
        assert_eq!(of(page_fault_tag(Rights::WRITE)), PAGE_FAULT);
        assert_eq!(fault_access(page_fault_tag(Rights::WRITE)), Rights::WRITE);
        assert_eq!(of(exception::TAG), ARCHITECTURE_EXCEPTION);
        assert_eq!(of(MessageTag::new(label(SIGMA0_EXTENDED, 0), 2, 0)), SIGMA0_EXTENDED);
        assert_eq!(of(MessageTag::new(1 << 4, 0, 0)), 1);
    }

    /// Rules: 12.4.
    #[test]
    fn sigma0_requests_for_any_memory() {
        let fpage = sigma0::any(12);
        assert!(sigma0::is_any(fpage));
        assert_eq!(fpage.raw(), 0xffff_ffff_ffff_fcc0);
        assert!(!sigma0::is_any(Fpage::memory(0x1000, 12)));
    }
}
