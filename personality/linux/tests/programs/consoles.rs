//! Tests of virtual consoles.

use super::*;
use std::sync::{Arc, Mutex};
use unix::tty::{Locks, Screen};

const OPEN: u64 = 2;
const IOCTL: u64 = 16;
const READ_WRITE: u64 = 2;
const NO_CONTROLLING_TERMINAL: u64 = 0o400;

const KDGKBTYPE: u64 = 0x4b33;
const KDSETMODE: u64 = 0x4b3a;
const KDGKBMODE: u64 = 0x4b44;
const KDSKBMODE: u64 = 0x4b45;
const KDGKBLED: u64 = 0x4b64;
const KDFONTOP: u64 = 0x4b72;
const TIOCGWINSZ: u64 = 0x5413;
const VT_OPENQRY: u64 = 0x5600;
const VT_GETMODE: u64 = 0x5601;
const VT_SETMODE: u64 = 0x5602;
const VT_GETSTATE: u64 = 0x5603;
const VT_ACTIVATE: u64 = 0x5606;
const VT_WAITACTIVE: u64 = 0x5607;
const VT_DISALLOCATE: u64 = 0x5608;

const EPERM: i64 = -1;
const ENXIO: i64 = -6;
const EBUSY: i64 = -16;
const EINVAL: i64 = -22;
const ENOTTY: i64 = -25;
const ENOSYS: i64 = -38;

/// A screen that only records what it is asked for.
#[derive(Default)]
struct Wishes(Mutex<Vec<u8>>);

impl Screen for Wishes {
    fn show(&self, number: u8) {
        self.0.lock().unwrap().push(number);
    }

    fn locks(&self) -> Locks {
        Locks::CAPS
    }
}

async fn open(p: &mut Program, path: &str) -> Result<u64, world::Gone> {
    let path = p.string(DATA, path).await?;
    Ok(p.call(OPEN, &[path, READ_WRITE | NO_CONTROLLING_TERMINAL]).await? as u64)
}

#[test]
fn programs_switch_consoles_and_wait_for_them() {
    let world = World::new();
    let screen = Arc::new(Wishes::default());
    let consoles = world.install_consoles(screen.clone());
    run_in(&world, async move |p| {
        let visible = open(p, "/dev/tty0").await?;
        assert_eq!(p.call(IOCTL, &[visible, VT_GETSTATE, DATA]).await?, 0);
        assert_eq!(p.load::<6>(DATA).await?, [1, 0, 0, 0, 3, 0]);
        assert_eq!(p.call(IOCTL, &[visible, VT_OPENQRY, DATA]).await?, 0);
        assert_eq!(p.load_u32(DATA).await?, 2);
        assert_eq!(p.call(IOCTL, &[visible, VT_ACTIVATE, 2]).await?, 0);
        assert_eq!(*screen.0.lock().unwrap(), [2]);
        for number in [0, 4, 64, 1 << 40] {
            assert_eq!(p.call(IOCTL, &[visible, VT_ACTIVATE, number]).await?, ENXIO, "{number}");
            assert_eq!(p.call(IOCTL, &[visible, VT_WAITACTIVE, number]).await?, ENXIO, "{number}");
        }
        p.fork(move |p| {
            Box::pin(async move {
                assert_eq!(p.call(IOCTL, &[visible, VT_WAITACTIVE, 2]).await?, 0);
                p.exit(5).await
            })
        })
        .await?;
        p.pass(10_000).await?;
        consoles.shown(7);
        p.pass(10_000).await?;
        assert_eq!(p.call(61, &[u64::MAX, 0, 1, 0]).await?, 0, "the child still waits");
        consoles.shown(2);
        assert_eq!(p.wait(0).await?, (2, 0x500));
        assert_eq!(p.call(IOCTL, &[visible, VT_GETSTATE, DATA]).await?, 0);
        assert_eq!(p.load::<2>(DATA).await?, [2, 0]);
        let second = open(p, "/dev/tty0").await?;
        assert_eq!(p.call(IOCTL, &[second, 0x8004_5432, DATA]).await?, 0);
        assert_eq!(p.load_u32(DATA).await?, 4 << 8 | 2, "it is the visible one now");
        Ok(())
    });
}

#[test]
fn consoles_have_text_and_utf_8_and_refuse_other_modes() {
    let world = World::new();
    world.install_consoles(Arc::new(Wishes::default()));
    run_in(&world, async move |p| {
        let tty = open(p, "/dev/tty1").await?;
        for (request, answer) in
            [(KDGKBTYPE, &[2][..]), (KDGKBMODE, &[3, 0, 0, 0]), (VT_GETMODE, &[0; 8]), (KDGKBLED, &[4])]
        {
            p.store(DATA, &[0xff; 8]).await?;
            assert_eq!(p.call(IOCTL, &[tty, request, DATA]).await?, 0, "{request:x}");
            assert_eq!(&p.load::<8>(DATA).await?[..answer.len()], answer, "{request:x}");
        }
        assert_eq!(p.call(IOCTL, &[tty, TIOCGWINSZ, DATA]).await?, 0);
        assert_eq!(p.load::<4>(DATA).await?, [25, 0, 80, 0]);
        p.store(DATA, &[0; 8]).await?;
        p.store(DATA + 8, &[1; 8]).await?;
        for (request, argument, result) in [
            (KDSETMODE, 0, 0),
            (KDSETMODE, 1, EINVAL),
            (KDSKBMODE, 3, 0),
            (KDSKBMODE, 0, EINVAL),
            (VT_SETMODE, DATA, 0),
            (VT_SETMODE, DATA + 8, EINVAL),
            (VT_SETMODE, 8, EFAULT),
            (KDFONTOP, DATA, ENOSYS),
            (0x4bff, DATA, ENOTTY),
        ] {
            assert_eq!(p.call(IOCTL, &[tty, request, argument]).await?, result, "{request:x}");
        }
        let pty = open(p, "/dev/ptmx").await?;
        assert_eq!(p.call(IOCTL, &[pty, KDGKBTYPE, DATA]).await?, ENOTTY, "it is no virtual console");
        Ok(())
    });
}

#[test]
fn only_a_free_console_is_cleared() {
    let world = World::new();
    let consoles = world.install_consoles(Arc::new(Wishes::default()));
    run_in(&world, async move |p| {
        let tty = open(p, "/dev/tty2").await?;
        for (number, result) in [(1, EBUSY), (2, EBUSY), (3, 0), (4, ENXIO), (0, 0)] {
            assert_eq!(p.call(IOCTL, &[tty, VT_DISALLOCATE, number]).await?, result, "{number}");
        }
        let output = |number: u8| {
            let mut bytes = [0; 10];
            let count = consoles.terminal(number).unwrap().take_output(&mut bytes);
            bytes[..count].to_vec()
        };
        assert_eq!([output(1), output(2), output(3)], [&b""[..], b"", b"\x1bc\x1bc"]);
        Ok(())
    });
}

#[test]
fn other_users_change_no_console_that_is_not_theirs() {
    let world = World::new();
    world.install_consoles(Arc::new(Wishes::default()));
    run_in(&world, async move |p| {
        let tty = open(p, "/dev/tty2").await?;
        assert_eq!(p.call(105, &[1000]).await?, 0);
        assert_eq!(p.call(IOCTL, &[tty, VT_GETSTATE, DATA]).await?, 0, "anybody may ask");
        assert_eq!(p.call(IOCTL, &[tty, VT_ACTIVATE, 2]).await?, EPERM);
        Ok(())
    });
}

#[test]
fn proc_names_the_console() {
    let world = World::new();
    world.install_consoles(Arc::new(Wishes::default()));
    world.install_proc();
    run_in(&world, async move |p| {
        let path = p.string(DATA, "/proc/consoles").await?;
        let file = p.call(OPEN, &[path, 0]).await? as u64;
        let count = p.call(0, &[file, DATA, 100]).await? as usize;
        let text = p.load::<100>(DATA).await?;
        let expected = "tty0                 -WU (EC p  )    4:1\n";
        assert_eq!(std::str::from_utf8(&text[..count]), Ok(expected));
        Ok(())
    });
}
