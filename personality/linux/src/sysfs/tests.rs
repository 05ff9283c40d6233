use super::*;
use core::ops::Range;
use mach::machine::Frame;
use unix::disk::{About, Data, Disk, Kind, Partition};
use unix::process_context::{FileSignal, ProcessId, SessionHost};
use unix::testing::{World, now};
use unix::tty::{Locks, PtsOptions, Ptys, Screen, Terminal, VirtualConsoles, WindowSize};
use unix::vfs::{At, FileMemory, MountFlags, OpenFlags};
use unix::{Bytes, Environment};

fn world(processors: usize) -> World {
    let w = World::new();
    w.mkdir("/sys");
    let root = sys(&w, processors, None, Box::new(Vec::new));
    now(w.caller().mount(b"/sys", root, "sysfs", MountFlags::empty())).unwrap();
    w
}

/// A /sys of the world.
fn sys(w: &World, processors: usize, terminals: Option<Arc<Terminals>>, devices: Box<Devices>) -> VnodeRef {
    let network = w.caller().vfs.network.clone();
    make(
        Hardware { processors, terminals, devices, network, environment: w.environment.clone() },
        w.environment.realtime(),
    )
}

#[test]
fn interfaces_are_listed_with_their_addresses_and_counters() {
    let w = world(1);
    let text = |path: &str| {
        let file = w.open(&format!("/sys/class/net/{path}"), OpenFlags::READ).unwrap();
        String::from_utf8(w.read(&file, 5000).unwrap()).unwrap()
    };
    assert_eq!(text("lo/address"), "00:00:00:00:00:00\n");
    assert_eq!([text("lo/flags"), text("lo/type"), text("lo/ifindex")], ["0x49\n", "772\n", "1\n"]);
    assert_eq!([text("lo/operstate"), text("lo/mtu")], ["unknown\n", "65536\n"]);
    assert!(w.open("/sys/class/net/eth0/mtu", OpenFlags::READ).is_err());
    assert!(w.open("/sys/class/net/lo/speed", OpenFlags::READ).is_err());
    let network = w.caller().vfs.network.clone();
    let index = network.attach("eth0", [2, 0, 0, 0, 0, 2], 1500, inet::Offload::default()).unwrap();
    assert_eq!([text("eth0/address"), text("eth0/operstate")], ["02:00:00:00:00:02\n", "down\n"]);
    network.with(|stack| stack.set_up(index, true)).unwrap();
    assert_eq!(
        [text("eth0/operstate"), text("eth0/carrier"), text("eth0/flags")],
        ["up\n", "1\n", "0x1043\n"]
    );
    assert_eq!(text("eth0/statistics/rx_bytes"), "0\n");
    network.received(index, &[0xff; 60], false);
    assert_eq!(text("eth0/statistics/rx_bytes"), "60\n");
    assert_eq!(text("eth0/uevent"), "INTERFACE=eth0\nIFINDEX=2\n");
}

struct NoProcesses;

impl SessionHost for NoProcesses {
    fn signal_group(&self, _group: ProcessId, _signal: FileSignal) {}
    fn signal_process(&self, _process: ProcessId, _signal: FileSignal) {}
    fn lose_terminal(&self, _session: ProcessId) {}
}

struct NoScreen;

impl Screen for NoScreen {
    fn show(&self, _number: u8) {}
    fn locks(&self) -> Locks {
        Locks::empty()
    }
}

#[test]
fn terminals_are_listed_and_the_visible_one_is_named() {
    let w = World::new();
    w.mkdir("/sys");
    let host: Arc<dyn SessionHost> = Arc::new(NoProcesses);
    let consoles = VirtualConsoles::new(2, WindowSize::default(), &host, Arc::new(NoScreen));
    let line = Terminal::new(DeviceNumber { major: 4, minor: 64 }, host.clone());
    let ptys = Ptys::new(w.environment.clone(), host, PtsOptions::default());
    let terminals = Terminals {
        console: Some(line.clone()),
        lines: vec![line],
        virtual_consoles: Some(consoles.clone()),
        ptys,
    };
    let root = sys(&w, 1, Some(Arc::new(terminals)), Box::new(Vec::new));
    now(w.caller().mount(b"/sys", root, "sysfs", MountFlags::empty())).unwrap();
    let text = |path: &str| {
        let file = w.open(&format!("/sys/class/tty/{path}"), OpenFlags::READ).unwrap();
        String::from_utf8(w.read(&file, 5000).unwrap()).unwrap()
    };
    assert_eq!([text("ttyS0/dev"), text("tty2/dev"), text("tty0/dev")], ["4:64\n", "4:2\n", "4:0\n"]);
    assert_eq!(text("console/active"), "ttyS0\n");
    assert_eq!(text("tty0/active"), "tty1\n");
    consoles.shown(2);
    assert_eq!(text("tty0/active"), "tty2\n");
}

fn text(w: &World, path: &str) -> String {
    let file = w.open(&format!("/sys/devices/system/{path}"), OpenFlags::READ).unwrap();
    String::from_utf8(w.read(&file, 5000).unwrap()).unwrap()
}

fn names(directory: &VnodeRef) -> Vec<String> {
    let mut names = Vec::new();
    // Reads one entry at a time, as a program with a small buffer does.
    let mut position = 0;
    loop {
        let before = names.len();
        let mut taken = false;
        now(directory.read_directory(position, &mut |entry| {
            let fits = !core::mem::replace(&mut taken, true);
            if fits {
                names.push(String::from_utf8(entry.name.to_vec()).unwrap());
                position = entry.next;
            }
            fits
        }))
        .unwrap();
        if names.len() == before {
            return names;
        }
    }
}

fn find(root: &VnodeRef, path: &str) -> Result<VnodeRef> {
    path.split('/').try_fold(root.clone(), |node, name| now(node.lookup(name.as_bytes())))
}

#[test]
fn files_show_the_number_of_processors() {
    let w = world(4);
    for name in ["online", "possible", "present"] {
        assert_eq!(text(&w, &format!("cpu/{name}")), "0-3\n");
    }
    assert_eq!(text(&w, "cpu/offline"), "\n");
    assert_eq!(text(&w, "cpu/cpu3/topology/core_id"), "3\n");
    assert_eq!(text(&w, "cpu/cpu3/topology/thread_siblings"), "8\n");
    assert_eq!(text(&w, "cpu/cpu3/topology/thread_siblings_list"), "3\n");
    assert_eq!(text(&w, "cpu/cpu3/topology/core_siblings"), "f\n");
    assert_eq!(text(&w, "cpu/cpu0/topology/package_cpus_list"), "0-3\n");
    assert_eq!(text(&w, "node/node0/cpulist"), "0-3\n");
    assert_eq!(text(&world(1), "cpu/online"), "0\n");
    assert_eq!(text(&world(1), "cpu/cpu0/topology/core_siblings"), "1\n");
    assert_eq!(text(&world(64), "cpu/cpu40/topology/core_cpus"), "00000100,00000000\n");
    assert_eq!(text(&world(64), "node/node0/cpumap"), "ffffffff,ffffffff\n");
    assert_eq!(text(&world(1000), "cpu/possible"), "0-63\n");
}

#[test]
fn every_directory_lists_its_entries() {
    let root = sys(&World::new(), 2, None, Box::new(Vec::new));
    let processors = find(&root, "devices/system/cpu").unwrap();
    let expected = ["cpu0", "cpu1", "isolated", "kernel_max", "offline", "online", "possible", "present"];
    assert_eq!(names(&processors), expected);
    assert_eq!(names(&root), ["block", "bus", "class", "dev", "devices"]);
    assert!(names(&find(&root, "block").unwrap()).is_empty());
    assert_eq!(find(&root, "devices/system/cpu/cpu2").err(), Some(Error::ENOENT));
    assert_eq!(find(&root, "devices/system/cpu/online/x").err(), Some(Error::ENOTDIR));
    let topology = find(&processors, "cpu1/topology").unwrap();
    let (parent, name) = topology.place().unwrap();
    assert_eq!((parent.number(), &name[..]), (find(&processors, "cpu1").unwrap().number(), &b"topology"[..]));
    assert!(root.parent().is_none() && root.place().is_none());
    let numbers = [&root, &processors, &topology].map(|node| node.number());
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    let links = [&root, &processors, &topology].map(|node| node.metadata().links);
    assert_eq!(links, [7, 4, 2], "two more than the directories that are there");
}

#[test]
fn links_lead_to_the_devices() {
    let w = world(2);
    let file = w.open("/sys/bus/cpu/devices/cpu1/topology/core_id", OpenFlags::READ).unwrap();
    assert_eq!(w.read(&file, 10), Ok(b"1\n".to_vec()));
}

#[test]
fn no_file_can_be_written_made_or_removed() {
    let w = world(2);
    let path = "/sys/devices/system/cpu/online";
    assert_eq!(w.open(path, OpenFlags::WRITE | OpenFlags::TRUNCATE).err(), Some(Error::EACCES));
    assert_eq!(w.open(path, OpenFlags::READ_WRITE).err(), Some(Error::EACCES));
    let file = w.open(path, OpenFlags::READ).unwrap();
    assert_eq!(w.open("/sys/file", OpenFlags::WRITE | OpenFlags::CREATE).err(), Some(Error::EACCES));
    let root = sys(&World::new(), 2, None, Box::new(Vec::new));
    let metadata = find(&root, &path[5..]).unwrap().metadata();
    assert_eq!((metadata.mode, metadata.size), (Mode::new(0o444), 4096));
    assert_eq!(w.read(&file, 1), Ok(b"0".to_vec()));
    assert_eq!(w.read(&file, 100), Ok(b"-1\n".to_vec()), "from where it was read last");
}

/// The device number by which find's -xdev and mountpoint(1) recognise a mount is sysfs' own.
#[test]
fn sysfs_has_its_own_device_number() {
    let w = world(1);
    let status = |path: &str| now(w.caller().status(&At::Current, path.as_bytes(), true, false));
    let device = |path: &str| status(path).unwrap().device;
    assert_ne!(device("/sys"), device("/"));
    assert_eq!(device("/sys"), device("/sys/devices/system/cpu/online"));
}

/// The contents of a disk that no test reads.
struct Nothing;

impl Data for Nothing {
    fn memory(&self) -> Arc<dyn FileMemory> {
        panic!("no test reads it")
    }

    fn write_back(&self, _: Range<u64>, _: bool) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    fn failures(&self) -> u32 {
        0
    }

    fn flush(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    fn read_frames<'a>(&'a self, _: u64, _: &'a [Frame]) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    fn write_frames<'a>(&'a self, _: u64, _: &'a [Frame]) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    fn discard(&self, _: Range<u64>) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }
}

#[test]
fn disks_and_partitions_come_and_go() {
    let about = About {
        family: unix::disk::Family::Virtio,
        size: 1 << 20,
        logical: 512,
        physical: 4096,
        read_only: false,
        has_cache: true,
        discard: 0,
        geometry: None,
        serial: b"number".to_vec(),
    };
    let disk = Disk::new("vda", DeviceNumber { major: 254, minor: 0 }, about, Arc::new(Nothing));
    let partition = Partition { number: 2, first: 64, count: 100, kind: Kind::Mbr(0x83) };
    let whole = Device { disk: disk.clone(), partition: None };
    let part = Device { disk, partition: Some(partition) };
    let shown = Arc::new(SpinLock::new(vec![whole, part]));
    let devices = shown.clone();
    let root = sys(&World::new(), 1, None, Box::new(move || devices.lock().clone()));
    let text = |path: &str| {
        let mut bytes = Bytes::empty(200);
        let file = find(&root, path).unwrap();
        now(file.read(0, &mut bytes)).unwrap();
        String::from_utf8(bytes.done().to_vec()).unwrap()
    };
    let at = "devices/virtio0/block/vda";
    assert_eq!(text(&format!("{at}/size")), "2048\n");
    assert_eq!(text(&format!("{at}/dev")), "254:0\n");
    assert_eq!(text(&format!("{at}/queue/physical_block_size")), "4096\n");
    assert_eq!(text(&format!("{at}/vda2/start")), "64\n");
    assert_eq!(text(&format!("{at}/vda2/dev")), "254:2\n");
    assert_eq!(names(&find(&root, "class/block").unwrap()), ["vda", "vda2"]);
    assert_eq!(names(&find(&root, "dev/block").unwrap()), ["254:0", "254:2"]);
    for (link, target) in [
        ("block/vda", "../devices/virtio0/block/vda"),
        ("class/block/vda2", "../../devices/virtio0/block/vda/vda2"),
        ("devices/virtio0/block/vda/vda2/subsystem", "../../../../../class/block"),
        ("devices/virtio0/block/vda/device", "../../../virtio0"),
    ] {
        let node = find(&root, link).unwrap();
        assert_eq!(now(node.link_text()).unwrap(), target.as_bytes());
    }
    shown.lock().pop();
    assert_eq!(names(&find(&root, "class/block").unwrap()), ["vda"]);
    assert!(find(&root, &format!("{at}/vda2")).is_err());
}
