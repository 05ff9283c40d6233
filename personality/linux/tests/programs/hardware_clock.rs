//! Tests of /dev/rtc0.

use crate::world::{DATA, World};
use crate::{EAGAIN, EINTR, run_in};

/// Numbers of calls.
const READ: u64 = 0;
const OPEN: u64 = 2;
const CLOSE: u64 = 3;
const IOCTL: u64 = 16;
const KILL: u64 = 62;
const SETUID: u64 = 105;
/// Requests.
const RTC_UIE_ON: u64 = 0x7003;
const RTC_RD_TIME: u64 = 0x8024_7009;
const RTC_SET_TIME: u64 = 0x4024_700a;
/// Errors.
const EACCES: i64 = -13;
const EBUSY: i64 = -16;
const EINVAL: i64 = -22;
const ENOTTY: i64 = -25;

/// The fields of a struct rtc_time as bytes.
fn time(fields: [u32; 9]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

#[test]
fn the_hardware_clock_is_read_and_set_by_one_program_at_a_time() {
    let world = World::new();
    world.install_devices();
    run_in(&world, async |p| {
        let path = p.string(DATA + 0x100, "/dev/rtc0").await?;
        // Not blocking: no interrupt ever comes.
        let file = p.call(OPEN, &[path, 0o4000, 0]).await? as u64;
        assert_eq!(p.call(OPEN, &[path, 0, 0]).await?, EBUSY);
        assert_eq!(p.call(READ, &[file, DATA, 8]).await?, EAGAIN);
        assert_eq!(p.call(READ, &[file, DATA, 5]).await?, EINVAL);
        // Monday, 28 February 2028, the 59th day of the year.
        let set = time([58, 59, 23, 28, 1, 128, 7, 7, 7]);
        p.store(DATA, &set).await?;
        assert_eq!(p.call(IOCTL, &[file, RTC_SET_TIME, DATA]).await?, 0);
        assert_eq!(p.call(IOCTL, &[file, RTC_RD_TIME, DATA]).await?, 0);
        assert_eq!(p.load::<36>(DATA).await?.to_vec(), time([58, 59, 23, 28, 1, 128, 1, 58, 0]));
        p.store(DATA, &time([0, 0, 0, 30, 1, 128, 0, 0, 0])).await?;
        assert_eq!(p.call(IOCTL, &[file, RTC_SET_TIME, DATA]).await?, EINVAL, "30 February");
        assert_eq!(p.call(IOCTL, &[file, RTC_UIE_ON]).await?, EINVAL);
        assert_eq!(p.call(IOCTL, &[file, 0x5401, DATA]).await?, ENOTTY);
        assert_eq!(p.call(CLOSE, &[file]).await?, 0);
        let file = p.call(OPEN, &[path, 0, 0]).await? as u64;
        p.store(DATA, &set).await?;
        assert_eq!(p.call(SETUID, &[1000]).await?, 0);
        assert_eq!(p.call(IOCTL, &[file, RTC_SET_TIME, DATA]).await?, EACCES);
        assert_eq!(p.call(IOCTL, &[file, RTC_RD_TIME, DATA]).await?, 0);
        Ok(())
    });
}

#[test]
fn a_read_of_the_hardware_clock_waits_until_a_signal_comes() {
    let world = World::new();
    world.install_devices();
    run_in(&world, async |p| {
        let path = p.string(DATA + 0x100, "/dev/rtc0").await?;
        let file = p.call(OPEN, &[path, 0, 0]).await? as u64;
        p.handle(10, 0, |_| Box::pin(async { Ok(()) })).await?;
        p.fork(|p| {
            Box::pin(async move {
                p.pass(1000).await?;
                assert_eq!(p.call(KILL, &[1, 10]).await?, 0);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.call(READ, &[file, DATA, 8]).await?, EINTR);
        assert_eq!(p.wait(0).await?.1, 0);
        Ok(())
    });
}
