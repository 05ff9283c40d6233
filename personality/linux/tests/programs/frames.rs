//! Tests of signal frames: what a handler starts with, and what its return restores.

use crate::world::{DATA, Gone, Program};
use crate::{bytes, run};
use mach::machine::simulated::EXTENDED_SIZE;
use std::cell::RefCell;
use std::rc::Rc;

const USR1: u64 = 10;
const SEGV: u64 = 11;
const USR2: u64 = 12;
/// SA_SIGINFO, SA_ONSTACK.
const INFO: u64 = 4;
const ON_STACK: u64 = 0x0800_0000;
/// Offsets in the context of a frame.
const STACK: u64 = 16;
const RIP: u64 = 40 + 8 * 16;
const EXTENDED: u64 = 224;
const MASK: u64 = 296;
const EPERM: i64 = -1;

/// Sends the signal to the program itself; its handler runs before this returns.
async fn raise(p: &mut Program, signal: u64) -> Result<(), Gone> {
    let pid = p.call(39, &[]).await? as u64;
    assert_eq!(p.call(62, &[pid, signal]).await?, 0);
    Ok(())
}

#[test]
fn a_return_to_no_address_of_a_program_is_a_segmentation_fault() {
    run(async |p| {
        for address in [1 << 47, 0xffff_8000_0000_0000, 1 << 63, u64::MAX] {
            p.handle(USR1, INFO, move |p| {
                Box::pin(async move { p.store(p.state.rdx + RIP, &address.to_le_bytes()).await })
            })
            .await?;
            p.fork(|p| Box::pin(async move { raise(p, USR1).await })).await?;
            assert_eq!(p.wait(0).await?.1, SEGV as u32, "{address:#x}");
            // A handler finds the address in its own frame, and may repair it.
            let back = p.state.rip;
            p.handle(SEGV, INFO, move |p| {
                Box::pin(async move {
                    const KERNEL: u32 = 0x80;
                    let (information, context) = (p.state.rsi, p.state.rdx);
                    assert_eq!(p.load_u32(information + 8).await?, KERNEL);
                    assert_eq!(p.load_u64(information + 16).await?, 0);
                    assert_eq!(p.load_u64(context + RIP).await?, address);
                    p.store(context + RIP, &back.to_le_bytes()).await
                })
            })
            .await?;
            raise(p, USR1).await?;
            // A handler that lies nowhere is one, too.
            p.store(DATA, &bytes(&[0, 0, 0, 0])).await?;
            assert_eq!(p.call(13, &[SEGV, DATA, 0, 8]).await?, 0);
            p.fork(move |p| {
                Box::pin(async move {
                    p.store(DATA, &bytes(&[address, 0x0400_0000, 0xdead_0000, 0])).await?;
                    assert_eq!(p.call(13, &[USR1, DATA, 0, 8]).await?, 0);
                    raise(p, USR1).await
                })
            })
            .await?;
            assert_eq!(p.wait(0).await?.1, SEGV as u32, "a handler at {address:#x}");
        }
        Ok(())
    });
}

#[test]
fn a_handler_starts_with_the_initial_extended_state_and_its_return_restores_the_old_one() {
    /// Where the frame has a description, which processors ignore.
    const DESCRIPTION: core::ops::Range<usize> = 464..512;
    const LEGACY: usize = 512;
    fn without_description(mut state: Vec<u8>) -> Vec<u8> {
        state[DESCRIPTION].fill(0);
        state
    }
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Change {
        None,
        Register,
        EndMark,
        Size,
        Initial,
    }
    run(async |p| {
        let old: Vec<u8> = (0..EXTENDED_SIZE).map(|at| at as u8 | 1).collect();
        for change in [Change::None, Change::Register, Change::EndMark, Change::Size, Change::Initial] {
            let expected = old.clone();
            p.handle(USR1, INFO, move |p| {
                let expected = expected.clone();
                Box::pin(async move {
                    assert_eq!(p.thread.extended_state(), Ok(vec![0; EXTENDED_SIZE]));
                    p.thread.set_extended_state(&[0x77; EXTENDED_SIZE]).unwrap();
                    let at = p.load_u64(p.state.rdx + EXTENDED).await?;
                    let saved = p.load::<EXTENDED_SIZE>(at).await?.to_vec();
                    assert_eq!(without_description(saved), without_description(expected));
                    match change {
                        Change::None => Ok(()),
                        Change::Register => p.store(at + 160, &[0xee]).await,
                        Change::EndMark => p.store(at + EXTENDED_SIZE as u64, &[0]).await,
                        Change::Size => p.store(at + DESCRIPTION.start as u64 + 16, &[1]).await,
                        Change::Initial => p.store(p.state.rdx + EXTENDED, &[0; 8]).await,
                    }
                })
            })
            .await?;
            p.thread.set_extended_state(&old).unwrap();
            raise(p, USR1).await?;
            let mut restored = old.clone();
            match change {
                Change::None => {}
                Change::Register => restored[160] = 0xee,
                Change::EndMark | Change::Size => restored[LEGACY..].fill(0),
                Change::Initial => restored.fill(0),
            }
            let got = p.thread.extended_state().unwrap();
            assert_eq!(without_description(got), without_description(restored), "{change:?}");
        }
        Ok(())
    });
}

#[test]
fn a_return_restores_the_mask_in_the_frame() {
    run(async |p| {
        let bit = |signal: u64| 1u64 << (signal - 1);
        p.handle(USR1, INFO, move |p| {
            Box::pin(async move {
                const KILL: u64 = 9;
                let mask = p.state.rdx + MASK;
                assert_eq!(p.call(14, &[0, 0, DATA + 0x100, 8]).await?, 0);
                assert_eq!(p.load_u64(DATA + 0x100).await?, bit(USR1), "in its handler it is blocked");
                assert_eq!(p.load_u64(mask).await?, 0);
                p.store(mask, &(bit(USR2) | bit(KILL)).to_le_bytes()).await
            })
        })
        .await?;
        raise(p, USR1).await?;
        assert_eq!(p.call(14, &[0, 0, DATA + 0x100, 8]).await?, 0);
        assert_eq!(p.load_u64(DATA + 0x100).await?, bit(USR2), "and SIGKILL cannot be blocked");
        Ok(())
    });
}

const SIZE: u64 = 0x4000;
/// SS_ONSTACK, SS_DISABLE, SS_AUTODISARM.
const ON: u64 = 1;
const OFF: u64 = 2;
const AUTO_DISARM: u64 = 1 << 31;

/// Sets the alternate stack; returns the result.
async fn set_stack(p: &mut Program, base: u64, flags: u64, size: u64) -> Result<i64, Gone> {
    p.store(DATA + 0x40, &bytes(&[base, flags, size])).await?;
    p.call(131, &[DATA + 0x40, 0]).await
}

/// Base, flags and size of the alternate stack.
async fn stack(p: &mut Program) -> Result<[u64; 3], Gone> {
    assert_eq!(p.call(131, &[0, DATA + 0x80]).await?, 0);
    stack_at(p, DATA + 0x80).await
}

async fn stack_at(p: &mut Program, at: u64) -> Result<[u64; 3], Gone> {
    Ok([p.load_u64(at).await?, p.load_u32(at + 8).await?.into(), p.load_u64(at + 16).await?])
}

fn is_on(base: u64, pointer: u64) -> bool {
    pointer > base && pointer <= base + SIZE
}

#[test]
fn handlers_run_on_the_alternate_stack_if_they_ask_for_it() {
    run(async |p| {
        let base = p.call(9, &[0, 2 * SIZE, 3, 0x22, u64::MAX, 0]).await? as u64;
        assert_eq!(stack(p).await?, [0, OFF, 0]);
        assert_eq!(set_stack(p, base, 0, SIZE).await?, 0);
        let runs = Rc::new(RefCell::new(Vec::new()));
        let seen = runs.clone();
        p.handle(USR1, INFO, move |p| {
            assert!(!is_on(base, p.state.rsp));
            seen.borrow_mut().push(USR1);
            Box::pin(async move {
                assert_eq!(stack(p).await?, [base, 0, SIZE]);
                Ok(())
            })
        })
        .await?;
        raise(p, USR1).await?;
        let seen = runs.clone();
        p.handle(USR2, INFO | ON_STACK, move |p| {
            let (pointer, context) = (p.state.rsp, p.state.rdx);
            assert!(is_on(base, pointer));
            seen.borrow_mut().push(USR2);
            Box::pin(async move {
                assert_eq!(stack_at(p, context + STACK).await?, [base, 0, SIZE], "where the signal came");
                assert_eq!(stack(p).await?, [base, ON, SIZE]);
                assert_eq!(set_stack(p, base + SIZE, 0, SIZE).await?, EPERM, "it is in use");
                // Another handler continues below, and does not begin at the top again.
                p.handle(USR1, INFO | ON_STACK, move |p| {
                    assert!(is_on(base, p.state.rsp) && p.state.rsp < pointer);
                    Box::pin(async { Ok(()) })
                })
                .await?;
                raise(p, USR1).await?;
                assert_eq!(stack(p).await?, [base, ON, SIZE]);
                Ok(())
            })
        })
        .await?;
        raise(p, USR2).await?;
        assert_eq!(*runs.borrow(), [USR1, USR2]);
        assert_eq!(stack(p).await?, [base, 0, SIZE]);
        Ok(())
    });
}

#[test]
fn a_return_restores_the_alternate_stack_in_the_frame() {
    run(async |p| {
        let base = p.call(9, &[0, 2 * SIZE, 3, 0x22, u64::MAX, 0]).await? as u64;
        let other = base + SIZE;
        // What the handler writes into its frame, and what is set afterwards.
        for (frame, expected) in [
            ([other, 0, SIZE], [other, 0, SIZE]),
            ([other, ON, SIZE], [other, 0, SIZE]),
            ([other, OFF, SIZE], [0, OFF, 0]),
            ([other, 4, SIZE], [base, 0, SIZE]),
            ([other, 0, 2047], [base, 0, SIZE]),
        ] {
            for flags in [INFO, INFO | ON_STACK] {
                assert_eq!(set_stack(p, base, 0, SIZE).await?, 0);
                p.handle(USR1, flags, move |p| {
                    Box::pin(async move { p.store(p.state.rdx + STACK, &bytes(&frame)).await })
                })
                .await?;
                raise(p, USR1).await?;
                assert_eq!(stack(p).await?, expected, "{frame:x?}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_stack_that_disarms_itself_is_free_while_a_handler_runs() {
    run(async |p| {
        let base = p.call(9, &[0, 2 * SIZE, 3, 0x22, u64::MAX, 0]).await? as u64;
        assert_eq!(set_stack(p, base, AUTO_DISARM, SIZE).await?, 0);
        // As on Linux, this is so for a handler on the usual stack, too.
        for flags in [INFO, INFO | ON_STACK] {
            p.handle(USR1, flags, move |p| {
                assert_eq!(is_on(base, p.state.rsp), flags & ON_STACK != 0);
                Box::pin(async move {
                    let context = p.state.rdx;
                    assert_eq!(stack_at(p, context + STACK).await?, [base, AUTO_DISARM, SIZE]);
                    assert_eq!(stack(p).await?, [0, OFF, 0]);
                    assert_eq!(set_stack(p, base + SIZE, 0, SIZE).await?, 0);
                    Ok(())
                })
            })
            .await?;
            raise(p, USR1).await?;
            assert_eq!(stack(p).await?, [base, AUTO_DISARM, SIZE], "it is armed again");
        }
        Ok(())
    });
}

#[test]
fn a_frame_that_leaves_the_alternate_stack_ends_the_program() {
    run(async |p| {
        for nested in [false, true] {
            p.fork(move |p| {
                Box::pin(async move {
                    // There is room for one frame, and none for another below it.
                    let base = p.call(9, &[0, 2 * SIZE, 3, 0x22, u64::MAX, 0]).await? as u64;
                    assert_eq!(set_stack(p, base + SIZE, 0, 2048).await?, 0);
                    p.handle(USR2, INFO | ON_STACK, |_| Box::pin(async { Ok(()) })).await?;
                    p.handle(USR1, INFO | ON_STACK, move |p| {
                        Box::pin(async move { if nested { raise(p, USR2).await } else { Ok(()) } })
                    })
                    .await?;
                    raise(p, USR1).await?;
                    p.exit(0).await
                })
            })
            .await?;
            assert_eq!(p.wait(0).await?.1, if nested { SEGV as u32 } else { 0 });
        }
        Ok(())
    });
}
