//! Tests of random bytes before the random source has been seeded.

use crate::world::{DATA, World};
use crate::{EAGAIN, EINTR, run_in};
use std::sync::Arc;
use unix::Seeding;

/// Numbers of calls.
const READ: u64 = 0;
const OPEN: u64 = 2;
const KILL: u64 = 62;
const GETRANDOM: u64 = 318;
/// Flags of getrandom(2), and of open(2).
const NONBLOCK: u64 = 1;
const INSECURE: u64 = 4;
const O_NONBLOCK: u64 = 0o4000;
/// When the random source is seeded, in microseconds after the start of the wait.
const LATER: u64 = 5000;

/// Runs a program before the random source is seeded: `call` must wait for that, and return 8.
fn waits_for_the_seed(
    call: impl AsyncFn(&mut crate::world::Program) -> Result<i64, crate::world::Gone> + 'static,
) {
    let seeding = Arc::new(Seeding::default());
    let world = World::with_seeding(4096, seeding.clone());
    world.install_devices();
    let clock = world.clone();
    run_in(&world, async move |p| {
        let seeding = seeding.clone();
        p.fork(move |p| {
            let seeding = seeding.clone();
            Box::pin(async move {
                p.pass(LATER).await?;
                seeding.finish();
                p.exit(0).await
            })
        })
        .await?;
        let begin = clock.now();
        assert_eq!(call(p).await?, 8);
        assert!(clock.now() >= begin + LATER);
        assert_eq!(p.load_u64(DATA).await?, 0x5a5a_5a5a_5a5a_5a5a);
        assert_eq!(call(p).await?, 8);
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}

#[test]
fn getrandom_waits_until_the_source_is_seeded() {
    waits_for_the_seed(async |p| p.call(GETRANDOM, &[DATA, 8, 0]).await);
}

#[test]
fn a_read_of_dev_random_waits_until_the_source_is_seeded() {
    waits_for_the_seed(async |p| {
        let path = p.string(DATA + 64, "/dev/random").await?;
        let file = p.call(OPEN, &[path, 0, 0]).await?;
        p.call(READ, &[file as u64, DATA, 8]).await
    });
}

#[test]
fn bytes_without_a_promise_come_before_the_seed() {
    let seeding = Arc::new(Seeding::default());
    let world = World::with_seeding(4096, seeding);
    world.install_devices();
    run_in(&world, async |p| {
        assert_eq!(p.call(GETRANDOM, &[DATA, 8, NONBLOCK]).await?, EAGAIN);
        assert_eq!(p.call(GETRANDOM, &[DATA, 8, INSECURE]).await?, 8);
        let path = p.string(DATA + 64, "/dev/urandom").await?;
        let file = p.call(OPEN, &[path, 0, 0]).await?;
        assert_eq!(p.call(READ, &[file as u64, DATA, 8]).await?, 8);
        let path = p.string(DATA + 64, "/dev/random").await?;
        let file = p.call(OPEN, &[path, O_NONBLOCK, 0]).await?;
        assert_eq!(p.call(READ, &[file as u64, DATA, 8]).await?, EAGAIN);
        Ok(())
    });
}

#[test]
fn a_signal_ends_the_wait_for_the_seed() {
    let world = World::with_seeding(4096, Arc::new(Seeding::default()));
    run_in(&world, async |p| {
        p.handle(10, 0, |_| Box::pin(async { Ok(()) })).await?;
        p.fork(|p| {
            Box::pin(async move {
                p.pass(1000).await?;
                assert_eq!(p.call(KILL, &[1, 10]).await?, 0);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.call(GETRANDOM, &[DATA, 8, 0]).await?, EINTR);
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}
