//! Tests of calls that are tried without a task, do a part of what they have to do, and are
//! finished by the task.

use crate::run;
use crate::world::{DATA, Program};

/// What is sent: more than a socket or a pipe holds.
const SIZE: u64 = 600_000;

/// The byte at `at` of what is sent: the pattern does not repeat where transfers are cut.
fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

/// Reads from descriptor `from` until its end, in pieces. Returns how many bytes came, all as they
/// were sent.
async fn read_all(p: &mut Program, from: u64) -> Result<u64, crate::world::Gone> {
    const PIECE: u64 = 0x1000;
    let buffer = p.call(9, &[0, PIECE, 3, 0x22, u64::MAX, 0]).await? as u64;
    let mut total = 0;
    loop {
        let count = p.call(0, &[from, buffer, PIECE]).await? as u64;
        if count == 0 {
            return Ok(total);
        }
        let bytes = p.load::<{ PIECE as usize }>(buffer).await?;
        let right = (0..count).all(|at| bytes[at as usize] == byte(total + at));
        assert!(right, "after {total} bytes");
        total += count;
    }
}

/// Sends what is in memory by the call `number`, once to a reader through a socket or a pipe.
async fn send(
    p: &mut Program,
    (pair, arguments): (u64, &'static [u64]),
    number: u64,
) -> Result<(), crate::world::Gone> {
    assert_eq!(p.call(pair, &[arguments, &[DATA]].concat()).await?, 0);
    let (reads, writes) = (u64::from(p.load_u32(DATA).await?), u64::from(p.load_u32(DATA + 4).await?));
    let memory = p.call(9, &[0, SIZE, 3, 0x22, u64::MAX, 0]).await? as u64;
    let bytes: Vec<u8> = (0..SIZE).map(byte).collect();
    p.store(memory, &bytes).await?;
    p.fork(move |p| {
        Box::pin(async move {
            assert_eq!(p.call(3, &[writes]).await?, 0);
            let all = read_all(p, reads).await? == SIZE;
            p.exit(all.into()).await
        })
    })
    .await?;
    let sent = match number {
        20 | 46 => {
            let (half, ranges, header) = (SIZE / 2, DATA + 0x100, DATA + 0x200);
            p.store(ranges, &crate::bytes(&[memory, half, memory + half, half])).await?;
            p.store(header, &crate::bytes(&[0, 0, ranges, 2, 0, 0, 0])).await?;
            match number {
                20 => p.call(20, &[writes, ranges, 2]).await?,
                _ => p.call(46, &[writes, header, 0]).await?,
            }
        }
        number => p.call(number, &[writes, memory, SIZE, 0, 0, 0]).await?,
    };
    assert_eq!(sent, SIZE as i64, "call {number}");
    assert_eq!(p.call(3, &[writes]).await?, 0);
    assert_eq!(p.wait(0).await?.1, 1 << 8, "the reader got it once");
    assert_eq!(p.call(3, &[reads]).await?, 0);
    Ok(())
}

#[test]
fn what_an_attempt_has_sent_is_not_sent_again() {
    const SOCKETS: (u64, &[u64]) = (53, &[1, 1, 0]);
    const PIPE: (u64, &[u64]) = (22, &[]);
    for (ends, number) in [(SOCKETS, 1), (SOCKETS, 20), (SOCKETS, 44), (SOCKETS, 46), (PIPE, 1), (PIPE, 20)] {
        run(async move |p| send(p, ends, number).await);
    }
}
