//! Tests of the boot option `exception-error-code`: exception messages have the processor's error
//! code as a 20th word (X.2 rule 11.3).

use crate::framework::fixture::spawn;
use crate::framework::tests;
use core::arch::naked_asm;
use l4::ipc::{self, Message};
use l4::utcb;
use x2::protocol::{self, exception};

tests! {
    ERC0001 [11.3, ABI 19.15] "the error code follows the exception's number, 0 where the processor has none" error_codes;
    ERC0002 [11.5] "an answer of 18 words is enough" answer;
}

#[unsafe(naked)]
extern "C" fn software_interrupt() -> ! {
    naked_asm!("int 0x80", "ud2")
}

#[unsafe(naked)]
extern "C" fn wrong_selector() -> ! {
    naked_asm!("mov eax, 0x38", "mov ds, eax", "ud2")
}

#[unsafe(naked)]
extern "C" fn non_canonical_access() -> ! {
    naked_asm!("mov rax, 0x8000000000000000", "mov rax, [rax]", "ud2")
}

#[unsafe(naked)]
extern "C" fn invalid_instruction() -> ! {
    naked_asm!("ud2")
}

fn error_codes() {
    let me = utcb::my_global_id();
    for (code, number, error) in [
        (wrong_selector as extern "C" fn() -> !, 13, 0x38),
        (software_interrupt, 13, 0x80 << 3 | 2),
        (non_canonical_access, 13, 0),
        (invalid_instruction, 6, 0),
    ] {
        let thread = spawn(move || {
            utcb::set_exception_handler(me);
            code()
        });
        // The word is part of the message even if it is 0.
        utcb::set_message_register(exception::ERROR_CODE, 0x77);
        let received = ipc::receive(thread).expect("an exception");
        assert_eq!(protocol::of(received.tag), protocol::ARCHITECTURE_EXCEPTION);
        assert_eq!(received.tag.untyped(), exception::WORDS_WITH_ERROR_CODE);
        assert_eq!(received.word(exception::NUMBER - 1), number);
        let told = received.word(exception::ERROR_CODE - 1);
        // The emulator gives the place of the gate in the table in units of 8 bytes instead of its
        // number.
        assert!(told == error || number == 13 && told == (error & !7) << 1 | 2, "{told:#x}, not {error:#x}");
    }
}

fn answer() {
    let me = utcb::my_global_id();
    let thread = spawn(move || {
        utcb::set_exception_handler(me);
        // SAFETY: the handler skips the two bytes.
        unsafe { core::arch::asm!("ud2") };
        ipc::send(me, Message::new(1)).unwrap();
    });
    let received = ipc::receive(thread).expect("an exception");
    let mut frame: [u64; exception::REPLY_WORDS] = core::array::from_fn(|index| received.word(index));
    frame[exception::RIP - 1] += 2;
    assert_eq!(ipc::call(thread, Message::with_words(0, &frame)).unwrap().tag.label(), 1);
}
