use super::*;
use crate::process_context::{FileSignal, ProcessContext, ProcessId, SessionHost};
use crate::testing::{World, memory, now};
use crate::tty::{PtsOptions, PtyMaster};
use crate::vfs::{MountFlags, OpenFlags};

const ADDITIONS: Additions = Additions {
    nodes: &[("nothing", 0o600, DeviceNumber { major: 1, minor: 3 })],
    links: &[("link", "nothing")],
};

struct NoProcesses;
impl SessionHost for NoProcesses {
    fn signal_group(&self, _group: ProcessId, _signal: FileSignal) {}
    fn signal_process(&self, _process: ProcessId, _signal: FileSignal) {}
    fn lose_terminal(&self, _session: ProcessId) {}
}

fn world() -> World {
    let w = World::new();
    let host = Arc::new(NoProcesses);
    let ptys = Ptys::new(w.environment.clone(), host.clone(), PtsOptions::default());
    let console = Terminal::new(DeviceNumber { major: 5, minor: 1 }, host);
    let terminals = Terminals { console: Some(console), ..Terminals::of(ptys.clone()) };
    let dev = now(make(&w.vfs, Arc::new(terminals), memory(), 1000, ADDITIONS)).unwrap();
    w.mkdir("/dev");
    now(w.caller().mount(b"/dev", dev, "devtmpfs", MountFlags::empty())).unwrap();
    now(w.caller().mount(b"/dev/pts", ptys.root(), "devpts", MountFlags::empty())).unwrap();
    w
}

#[test]
fn memory_devices_read_and_write_as_null_4_says() {
    let w = world();
    let open = |path: &str| w.open(path, OpenFlags::READ_WRITE).unwrap();
    let (null, zero, full, random) =
        (open("/dev/null"), open("/dev/zero"), open("/dev/full"), open("/dev/urandom"));
    assert_eq!(w.read(&null, 10), Ok(vec![]));
    assert_eq!(w.write(&null, &[1; 100_000]), Ok(100_000));
    assert_eq!(w.read(&zero, 300_000), Ok(vec![0; 300_000]), "as much as is asked for");
    assert_eq!(w.write(&zero, b"x"), Ok(1));
    assert_eq!(w.read(&full, 3), Ok(vec![0; 3]));
    assert_eq!(w.write(&full, b"x"), Err(Error::ENOSPC));
    let bytes = w.read(&random, 1000).unwrap();
    assert!(bytes.len() == 1000 && bytes.iter().any(|b| *b != bytes[0]));
    assert_eq!(now(null.seek(100, crate::file::Whence::Start)), Ok(0));
    // The device is opened with truncation, and then on a mount without devices.
    assert!(w.open("/dev/null", OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE).is_ok());
    now(w.caller().remount(b"/dev", MountFlags::NO_DEVICES, false, Some(b""))).unwrap();
    assert_eq!(w.open("/dev/null", OpenFlags::READ).err(), Some(Error::EACCES));
}

#[test]
fn what_is_written_to_the_random_devices_is_mixed_in() {
    let after = |written: &[u8]| {
        let w = world();
        let file = w.open("/dev/random", OpenFlags::READ_WRITE).unwrap();
        assert_eq!(w.write(&file, written), Ok(written.len()));
        w.read(&file, 16).unwrap()
    };
    assert_eq!(after(b""), after(b""), "the random bytes of tests are always the same");
    let large = vec![7; 100_000];
    let mut all = [after(b""), after(b"a"), after(b"b"), after(&large), after(&large[1..])];
    all.sort();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_front_end_can_add_nodes_and_links() {
    let w = world();
    let file = w.open("/dev/link", OpenFlags::READ_WRITE).unwrap();
    assert_eq!(file.metadata().mode, Mode::new(0o600));
    assert_eq!((w.write(&file, b"x"), w.read(&file, 1)), (Ok(1), Ok(vec![])));
}

#[test]
fn terminals_have_names_in_dev() {
    let w = world();
    assert_eq!(w.open("/dev/tty", OpenFlags::READ).err(), Some(Error::ENXIO));
    let console = w.open("/dev/console", OpenFlags::READ_WRITE).unwrap();
    assert!(w.process.terminal().is_some(), "the session leader's first terminal is its controlling one");
    let own = w.open("/dev/tty", OpenFlags::READ_WRITE).unwrap();
    assert!(Arc::ptr_eq(
        console.object().unwrap().terminal().unwrap(),
        own.object().unwrap().terminal().unwrap()
    ));
    let master = w.open("/dev/ptmx", OpenFlags::READ_WRITE).unwrap();
    master.object_as::<PtyMaster>().unwrap().set_locked(false);
    let slave = w.open("/dev/pts/0", OpenFlags::READ_WRITE).unwrap();
    w.write(&slave, b"hello\n").unwrap();
    assert_eq!(w.read(&master, 99), Ok(b"hello\r\n".to_vec()));
    w.write(&own, b"x").unwrap();
    let mut shown = [0; 9];
    assert_eq!(console.object().unwrap().terminal().unwrap().take_output(&mut shown), 1);
}
