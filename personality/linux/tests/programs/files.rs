//! Tests of mounts, memory files, splices, process descriptors and inotify, through the system
//! calls of programs.

use crate::world::{self, DATA, Program, World};
use crate::{EAGAIN, bytes, run, run_in};

#[test]
fn mount_and_umount_work_as_in_the_manual() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let tmpfs = p.string(DATA, "tmpfs").await?;
        let path = p.string(DATA + 0x40, "/m").await?;
        let options = p.string(DATA + 0x80, "size=16k,mode=700").await?;
        let none = p.string(DATA + 0xc0, "nosuchfs").await?;
        let file = p.string(DATA + 0x100, "/m/file").await?;
        assert_eq!(p.call(165, &[tmpfs, path, tmpfs, 0, options]).await?, -2);
        assert_eq!(p.call(83, &[path, 0o755]).await?, 0);
        assert_eq!(p.call(165, &[tmpfs, path, none, 0, 0]).await?, -19);
        assert_eq!(p.call(165, &[tmpfs, path, 0, 0, 0]).await?, -22);
        assert_eq!(p.call(165, &[tmpfs, path, tmpfs, 8, options]).await?, 0);
        // statfs reports a tmpfs of four pages with the flags noexec and relatime.
        assert_eq!(p.call(137, &[path, DATA + 0x200]).await?, 0);
        assert_eq!((p.load_u64(DATA + 0x200).await?, p.load_u64(DATA + 0x210).await?), (0x0102_1994, 4));
        assert_eq!(p.load_u64(DATA + 0x200 + 80).await? & 8, 8);
        let open = p.call(2, &[file, 0o101, 0o644]).await? as u64;
        assert_eq!(p.call(1, &[open, DATA, 0x6000]).await?, 0x4000, "there is no more room");
        assert_eq!(p.call(1, &[open, DATA, 1]).await?, -28);
        assert_eq!(p.call(166, &[path, 0]).await?, -16, "in use");
        assert_eq!(p.call(3, &[open]).await?, 0);
        // The file is read-only only through the bind mount.
        let bound = p.string(DATA + 0x140, "/b").await?;
        assert_eq!(p.call(83, &[bound, 0o755]).await?, 0);
        assert_eq!(p.call(165, &[path, bound, 0, 0x1000, 0]).await?, 0);
        assert_eq!(p.call(165, &[0, bound, 0, 0x1021, 0]).await?, 0);
        let through = p.string(DATA + 0x180, "/b/file").await?;
        assert_eq!(p.call(87, &[through]).await?, -30);
        assert_eq!(p.call(87, &[file]).await?, 0);
        // The text of mountinfo shows the mounts.
        let list = p.string(DATA + 0x1c0, "/proc/self/mountinfo").await?;
        let open = p.call(2, &[list, 0]).await? as u64;
        let count = p.call(0, &[open, DATA + 0x400, 0x800]).await? as usize;
        let mut text = p.load::<0x800>(DATA + 0x400).await?.to_vec();
        text.truncate(count);
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find(|line| line.contains(" /b ")).expect("a line for /b");
        assert!(line.contains(" / /b ro,") && line.contains(" - tmpfs tmpfs "), "{line}");
        assert_eq!(p.call(166, &[bound, 0]).await?, 0);
        assert_eq!(p.call(166, &[bound, 0]).await?, -22, "not mounted");
        assert_eq!(p.call(166, &[path, 2]).await?, 0);
        // Only the superuser may mount.
        assert_eq!(p.call(105, &[1000]).await?, 0);
        assert_eq!(p.call(165, &[tmpfs, path, tmpfs, 0, 0]).await?, -1);
        assert_eq!(p.call(166, &[path, 0]).await?, -1);
        Ok(())
    });
}

#[test]
fn a_process_has_mounts_of_its_own() {
    const NEW_MOUNTS: u64 = 0x2_0000;
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let tmpfs = p.string(DATA, "tmpfs").await?;
        let path = p.string(DATA + 0x40, "/m").await?;
        let put = p.string(DATA + 0x80, "/m/put").await?;
        let below = p.string(DATA + 0xc0, "/put/m").await?;
        let dot = p.string(DATA + 0x100, ".").await?;
        let list = p.string(DATA + 0x140, "/proc/self/mountinfo").await?;
        assert_eq!(p.call(83, &[path, 0o755]).await?, 0);
        // clone with CLONE_FS would share the directories of another namespace.
        assert_eq!(p.call(56, &[NEW_MOUNTS | 0x200 | 17, 0, 0, 0, 0]).await?, -22);
        p.fork(move |p| {
            Box::pin(async move {
                assert_eq!(p.call(272, &[NEW_MOUNTS]).await?, 0);
                assert_eq!(p.call(165, &[tmpfs, path, tmpfs, 0, 0]).await?, 0);
                // It is shared, and then a slave without a master.
                assert_eq!(p.call(165, &[0, path, 0, 0x10_0000, 0]).await?, 0);
                let open = p.call(2, &[list, 0]).await? as u64;
                let count = p.call(0, &[open, DATA + 0x400, 0x800]).await? as usize;
                let text = p.load::<0x800>(DATA + 0x400).await?;
                let text = String::from_utf8_lossy(&text[..count]).into_owned();
                assert!(text.lines().any(|line| line.contains(" /m rw,relatime shared:")), "{text}");
                assert_eq!(p.call(165, &[0, path, 0, 0x14_0000, 0]).await?, -22, "shared and private");
                assert_eq!(p.call(83, &[put, 0o755]).await?, 0);
                assert_eq!(p.call(155, &[path, put]).await?, -22, "the mount is shared");
                assert_eq!(p.call(165, &[0, path, 0, 0x4_4000, 0]).await?, 0);
                assert_eq!(p.call(155, &[put, path]).await?, -22);
                assert_eq!(p.call(155, &[path, put]).await?, 0);
                assert_eq!(p.call(21, &[below, 0]).await?, 0, "the old root is below the new one");
                assert_eq!(p.call(80, &[dot]).await?, 0);
                p.exit(0).await
            })
        })
        .await?;
        assert!(p.call(61, &[u64::MAX, DATA + 0x380, 0, 0]).await? > 0);
        assert_eq!(p.load_u64(DATA + 0x380).await? as u32, 0);
        assert_eq!(p.call(166, &[path, 0]).await?, -22, "nothing is mounted here");
        assert_eq!(p.call(272, &[NEW_MOUNTS]).await?, 0);
        assert_eq!(p.call(165, &[tmpfs, path, tmpfs, 0, 0]).await?, 0);
        assert_eq!(p.call(105, &[1000]).await?, 0);
        for denied in [p.call(272, &[NEW_MOUNTS]).await?, p.call(155, &[path, path]).await?] {
            assert_eq!(denied, -1);
        }
        assert_eq!(p.call(56, &[NEW_MOUNTS | 17, 0, 0, 0, 0]).await?, -1);
        Ok(())
    });
}

#[test]
fn file_systems_are_mounted_by_descriptors() {
    /// AT_FDCWD.
    const CURRENT: u64 = -100i64 as u64;
    run(async |p| {
        let mut place = DATA;
        let mut string = async |p: &mut crate::world::Program, text: &str| {
            place += 0x20;
            p.string(place, text).await
        };
        let (tmpfs, none) = (string(p, "tmpfs").await?, string(p, "nosuchfs").await?);
        let (m, n, empty) = (string(p, "/m").await?, string(p, "/n").await?, string(p, "").await?);
        let (size, small) = (string(p, "size").await?, string(p, "16k").await?);
        let (source, name) = (string(p, "source").await?, string(p, "mine").await?);
        let (relative, file) = (string(p, "f").await?, string(p, "/m/f").await?);
        let copied = string(p, "/n/f").await?;
        let attributes = DATA + 0x800;
        for path in [m, n] {
            assert_eq!(p.call(83, &[path, 0o755]).await?, 0);
        }
        assert_eq!(p.call(430, &[none, 0]).await?, -19);
        assert_eq!(p.call(430, &[tmpfs, 2]).await?, -22);
        let context = p.call(430, &[tmpfs, 1]).await? as u64;
        assert_eq!(p.call(432, &[context, 0, 0]).await?, -22, "there is no file system yet");
        assert_eq!(p.call(431, &[context, 1, size, 0, 0]).await?, -22, "a string without a value");
        assert_eq!(p.call(431, &[context, 3, size, small, 0]).await?, -95);
        assert_eq!(p.call(431, &[context, 1, size, small, 0]).await?, 0);
        assert_eq!(p.call(431, &[context, 1, source, name, 0]).await?, 0);
        assert_eq!(p.call(431, &[context, 1, source, name, 0]).await?, -22);
        assert_eq!(p.call(431, &[context, 6, 0, 0, 0]).await?, 0);
        assert_eq!(p.call(431, &[context, 6, 0, 0, 0]).await?, -16);
        assert_eq!(p.call(431, &[context, 1, size, small, 0]).await?, -16);
        assert_eq!(p.call(432, &[context, 0, 0x30]).await?, -22, "no such access times");
        let mount = p.call(432, &[context, 1, 8]).await? as u64;
        assert_eq!(p.call(432, &[context, 0, 0]).await?, -16, "once only");
        // It can be used before it is in the tree.
        let made = p.call(257, &[mount, relative, 0o101, 0o644]).await? as u64;
        assert_eq!(p.call(1, &[made, DATA, 0x6000]).await?, 0x4000, "there is no more room");
        assert_eq!(p.call(3, &[made]).await?, 0);
        assert_eq!(p.call(429, &[mount, empty, CURRENT, m, 0]).await?, -2, "an empty path needs a flag");
        assert_eq!(p.call(429, &[mount, empty, CURRENT, m, 4]).await?, 0);
        assert_eq!(p.call(21, &[file, 0]).await?, 0);
        assert_eq!(p.call(429, &[mount, empty, CURRENT, n, 4]).await?, 0, "it is moved");
        assert_eq!((p.call(21, &[file, 0]).await?, p.call(21, &[copied, 0]).await?), (-2, 0));
        assert_eq!(p.call(429, &[CURRENT, n, CURRENT, m, 0]).await?, 0);
        // A copy of it that can only be read, and is not in the tree until it is moved there.
        assert_eq!(p.call(428, &[CURRENT, m, 0x8000]).await?, -22);
        let tree = p.call(428, &[CURRENT, m, 0x8001]).await? as u64;
        p.store(attributes, &[0; 40]).await?;
        p.store(attributes, &1u64.to_le_bytes()).await?;
        assert_eq!(p.call(442, &[tree, empty, 0x1000, attributes, 31]).await?, -22);
        assert_eq!(p.call(442, &[tree, empty, 0x9000, attributes, 32]).await?, 0);
        assert_eq!(p.call(429, &[tree, empty, CURRENT, n, 4]).await?, 0);
        assert_eq!((p.call(87, &[copied]).await?, p.call(21, &[file, 2]).await?), (-30, 0));
        // It becomes writable and shared.
        p.store(attributes, &[0; 40]).await?;
        p.store(attributes + 8, &1u64.to_le_bytes()).await?;
        p.store(attributes + 16, &0x10_0000u64.to_le_bytes()).await?;
        assert_eq!(p.call(442, &[CURRENT, copied, 0, attributes, 40]).await?, -22, "not a mount");
        assert_eq!(p.call(442, &[CURRENT, n, 0, attributes, 40]).await?, 0);
        assert_eq!(p.call(21, &[copied, 2]).await?, 0);
        // Files under copies that are closed without a place are released.
        let other = p.call(428, &[CURRENT, n, 0x8001]).await? as u64;
        assert_eq!(p.call(3, &[other]).await?, 0);
        let picked = p.call(433, &[CURRENT, m, 1]).await? as u64;
        assert_eq!(p.call(431, &[picked, 7, 0, 0, 0]).await?, 0);
        assert_eq!(p.call(432, &[picked, 0, 0]).await?, -16);
        assert_eq!(p.call(433, &[CURRENT, file, 0]).await?, -22);
        assert_eq!(p.call(431, &[tree, 6, 0, 0, 0]).await?, -22, "not a context");
        for descriptor in [context, mount, tree, picked] {
            assert_eq!(p.call(3, &[descriptor]).await?, 0);
        }
        for path in [m, n] {
            assert_eq!(p.call(166, &[path, 0]).await?, 0);
        }
        assert_eq!(p.call(105, &[1000]).await?, 0);
        assert_eq!(p.call(430, &[tmpfs, 0]).await?, -1);
        assert_eq!(p.call(428, &[CURRENT, m, 1]).await?, -1);
        assert_eq!(p.call(429, &[CURRENT, n, CURRENT, m, 0]).await?, -1);
        assert_eq!(p.call(442, &[CURRENT, n, 0, attributes, 32]).await?, -1);
        let place = p.call(428, &[CURRENT, m, 0]).await?;
        assert!(place >= 0, "a location is opened without privilege");
        Ok(())
    });
}

#[test]
fn the_clock_can_be_adjusted_by_a_step_only() {
    const SETOFFSET_NANO: u32 = 0x2100;
    run(async |p| {
        let (timex, time) = (DATA, DATA + 0x100);
        p.store(timex, &[0; 208]).await?;
        assert_eq!(p.call(159, &[timex]).await?, 5, "nothing synchronises the clock");
        let seconds = p.load_u64(timex + 72).await?;
        assert_eq!((p.load_u64(timex + 88).await?, p.load_u64(timex + 16).await?), (10_000, 0));
        // An hour and half a second earlier.
        p.store(timex, &SETOFFSET_NANO.to_le_bytes()).await?;
        p.store(timex + 72, &(-3601i64).to_le_bytes()).await?;
        p.store(timex + 80, &500_000_000u64.to_le_bytes()).await?;
        assert_eq!(p.call(305, &[0, timex]).await?, 5);
        assert_eq!(p.call(228, &[0, time]).await?, 0);
        let now = p.load_u64(time).await?;
        assert!((seconds - 3601..seconds - 3590).contains(&now), "{seconds} {now}");
        p.store(timex + 80, &1_000_000_000u64.to_le_bytes()).await?;
        assert_eq!(p.call(159, &[timex]).await?, -22);
        // Another rate is not possible, the present one is.
        p.store(timex, &2u32.to_le_bytes()).await?;
        assert_eq!(p.call(159, &[timex]).await?, 5);
        p.store(timex + 16, &65536u64.to_le_bytes()).await?;
        assert_eq!(p.call(159, &[timex]).await?, -95);
        assert_eq!(p.call(305, &[1, timex]).await?, -95);
        assert_eq!(p.call(305, &[77, timex]).await?, -22);
        assert_eq!(p.call(159, &[0]).await?, -14);
        assert_eq!(p.call(105, &[1000]).await?, 0);
        assert_eq!(p.call(159, &[timex]).await?, -1);
        p.store(timex, &[0; 4]).await?;
        assert_eq!(p.call(159, &[timex]).await?, 5, "reading needs no privilege");
        Ok(())
    });
}

#[test]
fn bytes_are_spliced_between_memory_files_and_pipes() {
    let world = World::new();
    world.install_proc();
    run_in(&world, async |p| {
        let name = p.string(DATA, "scratch").await?;
        assert_eq!(p.call(319, &[name, 0x100]).await?, -22);
        assert_eq!(p.call(319, &[name, 1]).await?, 0);
        assert_eq!(p.call(72, &[0, 1]).await?, 1);
        assert_eq!(p.call(77, &[0, 8192]).await?, 0);
        let shared = p.call(9, &[0, 8192, 3, 1, 0, 0]).await? as u64;
        p.store(shared + 4096, b"hello, memory").await?;
        assert_eq!(p.call(17, &[0, DATA + 0x100, 5, 4096]).await?, 5);
        assert_eq!(&p.load::<5>(DATA + 0x100).await?, b"hello");
        let link = p.string(DATA + 0x40, "/proc/self/fd/0").await?;
        let count = p.call(89, &[link, DATA + 0x200, 100]).await? as usize;
        assert_eq!(&p.load::<25>(DATA + 0x200).await?[..count], b"/memfd:scratch (deleted)");

        // The bytes go from a file to a pipe and then to a file.
        assert_eq!(p.call(293, &[DATA, 0]).await?, 0);
        let (read, write) = (1, 2);
        p.store(DATA + 0x300, &bytes(&[4096])).await?;
        assert_eq!(p.call(275, &[0, DATA + 0x300, write, 0, 13, 0]).await?, 13);
        assert_eq!(p.load_u64(DATA + 0x300).await?, 4109);
        assert_eq!(p.call(275, &[0, DATA + 0x300, write, DATA + 0x300, 13, 0]).await?, -29);
        assert_eq!(p.call(275, &[0, 0, 0, 0, 13, 0]).await?, -22);
        assert_eq!(p.call(293, &[DATA, 0]).await?, 0);
        let (second, into) = (3, 4);
        assert_eq!(p.call(276, &[read, into, 7, 0]).await?, 7, "tee");
        assert_eq!(p.call(0, &[second, DATA + 0x100, 50]).await?, 7);
        assert_eq!(&p.load::<7>(DATA + 0x100).await?, b"hello, ");
        p.store(DATA + 0x300, &bytes(&[100])).await?;
        assert_eq!(p.call(275, &[read, 0, 0, DATA + 0x300, 5, 0]).await?, 5);
        assert_eq!(&p.load::<5>(shared + 100).await?, b"hello");
        assert_eq!(p.call(275, &[read, 0, into, 0, 100, 0]).await?, 8, "from pipe to pipe");
        assert_eq!(p.call(275, &[read, 0, into, 0, 100, 2]).await?, EAGAIN);
        assert_eq!(p.call(275, &[second, 0, into, 0, 100, 0]).await?, -22, "the same pipe");
        p.store(DATA + 0x300, &bytes(&[DATA + 0x100, 3])).await?;
        assert_eq!(p.call(278, &[into, DATA + 0x300, 1, 0]).await?, 3);
        assert_eq!(p.call(278, &[0, DATA + 0x300, 1, 0]).await?, -9);
        assert_eq!(p.call(3, &[write]).await?, 0);
        assert_eq!(p.call(275, &[read, 0, 0, 0, 100, 0]).await?, 0, "the end");
        Ok(())
    });
}

#[test]
fn seals_forbid_changes_of_memory_files() {
    const ADD: u64 = 1033;
    const GET: u64 = 1034;
    const EPERM: i64 = -1;
    const EBUSY: i64 = -16;
    run(async |p| {
        let name = p.string(DATA, "sealed").await?;
        assert_eq!(p.call(319, &[name, 0x10]).await?, -22);
        let plain = p.call(319, &[name, 0]).await? as u64;
        assert_eq!(p.call(72, &[plain, GET]).await?, 1, "F_SEAL_SEAL");
        assert_eq!(p.call(72, &[plain, ADD, 2]).await?, EPERM);
        let path = p.string(DATA + 0x40, "/").await?;
        let directory = p.call(2, &[path, 0]).await? as u64;
        assert_eq!(p.call(72, &[directory, GET]).await?, -22);
        let file = p.call(319, &[name, 2]).await? as u64;
        assert_eq!(p.call(72, &[file, GET]).await?, 0);
        assert_eq!(p.call(72, &[file, ADD, 32]).await?, -22);
        assert_eq!(p.call(77, &[file, 5000]).await?, 0);
        // Pages and sizes: F_SEAL_SHRINK and F_SEAL_GROW.
        assert_eq!(p.call(72, &[file, ADD, 2 | 4]).await?, 0);
        assert_eq!(p.call(77, &[file, 4999]).await?, EPERM);
        assert_eq!(p.call(77, &[file, 5001]).await?, EPERM);
        assert_eq!(p.call(77, &[file, 5000]).await?, 0);
        assert_eq!(p.call(285, &[file, 0, 4000, 2000]).await?, EPERM);
        assert_eq!(p.call(285, &[file, 3, 0, 10]).await?, 0, "a hole");
        assert_eq!(p.call(18, &[file, DATA, 8, 4996]).await?, EPERM, "the write would end after the file");
        assert_eq!(p.call(18, &[file, DATA, 8, 4990]).await?, 8);
        assert_eq!(p.call(18, &[file, DATA, 2000, 4000]).await?, 96, "up to the last page");
        // A shared mapping that may be written forbids F_SEAL_WRITE; parts and copies of it, too.
        let mapped = p.call(9, &[0, 8192, 3, 1, file, 0]).await? as u64;
        assert_eq!(p.call(72, &[file, ADD, 8]).await?, EBUSY);
        assert_eq!(p.call(11, &[mapped, 4096]).await?, 0);
        assert_eq!(p.call(10, &[mapped + 4096, 4096, 1]).await?, 0);
        assert_eq!(p.call(72, &[file, ADD, 8]).await?, EBUSY, "it may be written again");
        // F_SEAL_FUTURE_WRITE leaves it.
        assert_eq!(p.call(72, &[file, ADD, 16]).await?, 0);
        assert_eq!(p.call(10, &[mapped + 4096, 4096, 3]).await?, 0);
        p.store(mapped + 4096, b"still").await?;
        assert_eq!(p.call(18, &[file, DATA, 1, 0]).await?, EPERM);
        assert_eq!(p.call(285, &[file, 3, 0, 10]).await?, EPERM);
        assert_eq!(p.call(9, &[0, 4096, 3, 1, file, 0]).await?, EPERM);
        let read_only = p.call(9, &[0, 4096, 1, 1, file, 4096]).await? as u64;
        assert_eq!(&p.load::<5>(read_only).await?, b"still");
        assert_eq!(p.call(10, &[read_only, 4096, 3]).await?, -13);
        let private = p.call(9, &[0, 4096, 3, 2, file, 0]).await? as u64;
        p.store(private, b"own").await?;
        // A child has the mapping until it ends.
        let child = p
            .fork(move |p| {
                Box::pin(async move {
                    p.call(34, &[]).await?;
                    panic!("pause returned");
                })
            })
            .await?;
        assert_eq!(p.call(11, &[mapped + 4096, 4096]).await?, 0);
        assert_eq!(p.call(72, &[file, ADD, 8]).await?, EBUSY);
        assert_eq!(p.call(62, &[child as u64, 9]).await?, 0);
        assert_eq!(p.wait(0).await?.0, child);
        assert_eq!(p.call(72, &[file, ADD, 8 | 1]).await?, 0);
        assert_eq!(p.call(72, &[file, GET]).await?, 31);
        assert_eq!(p.call(72, &[file, ADD, 8]).await?, EPERM, "F_SEAL_SEAL");
        assert_eq!(p.call(9, &[0, 4096, 1, 1, file, 4096]).await?, EPERM);
        assert!(p.call(9, &[0, 4096, 1, 2, file, 4096]).await? > 0, "a private one");
        // A file that is opened to be read cannot be sealed.
        let again = p.string(DATA + 0x80, "/tmpfile").await?;
        let named = p.call(2, &[again, 0o102, 0o600]).await? as u64;
        assert_eq!(p.call(72, &[named, GET]).await?, 1, "a file of a tmpfs");
        let named = p.call(2, &[again, 0]).await? as u64;
        assert_eq!(p.call(72, &[named, ADD, 2]).await?, EPERM);
        Ok(())
    });
}

#[test]
fn the_path_of_an_open_is_restricted() {
    const EXDEV: i64 = -18;
    const ELOOP: i64 = -40;
    let world = World::new();
    world.install_proc();
    world.make_directory("/d", 0o755);
    world.make_directory("/d/e", 0o755);
    world.install("/d/e/file", 0o644, b"");
    world.install("/out", 0o644, b"");
    run_in(&world, async |p| {
        let paths = ["/d", "e/file", "e/../../out", "/e/file", "link", "absolute", "proc/self/exe"];
        for (index, path) in paths.into_iter().enumerate() {
            p.string(DATA + 64 * index as u64, path).await?;
        }
        let path = |index: u64| DATA + 64 * index;
        let directory = p.call(2, &[path(0), 0o10_000_000]).await? as u64;
        for (target, link) in [("e/file", 4), ("/e/file", 5)] {
            let target = p.string(DATA + 0x300, target).await?;
            assert_eq!(p.call(266, &[target, directory, path(link)]).await?, 0);
        }
        let proc = p.string(DATA + 0x300, "proc").await?;
        let point = p.string(DATA + 0x340, "/d/proc").await?;
        assert_eq!(p.call(83, &[point, 0o755]).await?, 0);
        assert_eq!(p.call(165, &[proc, point, proc, 0, 0]).await?, 0);
        let at = DATA + 0x400;
        for (index, resolve, expected) in [
            (1, 0x1f & !0x10, 0),
            (2, 0, 0),
            (2, 8, EXDEV),
            (2, 16, -2),
            (3, 0, -2),
            (3, 8, EXDEV),
            (3, 16, 0),
            (4, 4, ELOOP),
            (4, 2 | 8, 0),
            (4, 0x20, 0),
            (5, 8, EXDEV),
            (5, 16, 0),
            (6, 0, 0),
            (6, 1, EXDEV),
            (6, 2, ELOOP),
            (6, 8, EXDEV),
            (1, 0x18, -22),
            (1, 0x40, -22),
        ] {
            p.store(at, &bytes(&[0, 0, resolve])).await?;
            let file = p.call(437, &[directory, path(index), at, 24]).await?;
            assert_eq!(file.min(0), expected, "path {index}, restrictions {resolve:#x}");
            if file >= 0 {
                assert_eq!(p.call(3, &[file as u64]).await?, 0);
            }
        }
        assert_eq!(p.call(437, &[directory, path(1), at, 23]).await?, -22);
        p.store(at, &bytes(&[0, 0, 0, 1])).await?;
        assert_eq!(p.call(437, &[directory, path(1), at, 32]).await?, -7);
        p.store(at, &bytes(&[0o100, 0o600, 0x20])).await?;
        assert_eq!(p.call(437, &[directory, path(1), at, 24]).await?, EAGAIN, "it could have to wait");
        Ok(())
    });
}

#[test]
fn files_without_names_show_their_kind_and_end_with_their_descriptors() {
    run(async |p| {
        let root = p.string(DATA, "/").await?;
        let named = p.string(DATA + 0x40, "/named").await?;
        let empty = p.string(DATA + 0x80, "").await?;
        assert_eq!(p.call(2, &[root, 0o20200002, 0o640]).await?, 0, "O_TMPFILE, which contains O_DIRECTORY");
        assert_eq!(p.call(18, &[0, DATA, 3, 100_000]).await?, 3);
        assert_eq!(p.call(8, &[0, 100_001, 4]).await?, 100_003, "the end is a hole");
        assert_eq!(p.call(8, &[0, 100_003, 4]).await?, -6);
        assert_eq!(p.call(265, &[0, empty, u64::MAX - 99, named, 0x1000]).await?, 0);
        assert_eq!(p.call(4, &[named, DATA + 0x100]).await?, 0);
        assert_eq!(p.load_u64(DATA + 0x100 + 48).await?, 100_003);
        Ok(())
    });
}

#[test]
fn a_process_descriptor_signals_and_waits_for_its_process() {
    run(async |p| {
        assert_eq!(p.call(434, &[99, 0]).await?, -3);
        assert_eq!(p.call(434, &[0, 0]).await?, -22);
        let child = p
            .fork(|p| {
                Box::pin(async move {
                    p.call(34, &[]).await?;
                    panic!("pause returned");
                })
            })
            .await? as u64;
        assert_eq!(p.call(434, &[child, 0]).await?, 0);
        assert_eq!(p.call(72, &[0, 1]).await?, 1);
        // The descriptor is not ready while the process lives. A signal through it ends the
        // process, and then it is ready.
        p.store(DATA, &bytes(&[1 << 32])).await?;
        assert_eq!(p.call(7, &[DATA, 1, 0]).await?, 0);
        assert_eq!(p.call(0, &[0, DATA, 8]).await?, -22);
        assert_eq!(p.call(247, &[3, 0, DATA + 0x100, 5, 0]).await?, 0, "not ended yet");
        assert_eq!(p.load_u32(DATA + 0x100).await?, 0);
        assert_eq!(p.call(424, &[0, 15, 0, 1]).await?, -22);
        assert_eq!(p.call(424, &[0, 15, 0, 0]).await?, 0);
        assert_eq!(p.call(7, &[DATA, 1, u64::MAX]).await?, 1);
        assert_eq!(p.call(247, &[3, 0, DATA + 0x100, 4, 0]).await?, 0);
        assert_eq!(u64::from(p.load_u32(DATA + 0x100 + 16).await?), child);
        assert_eq!(p.call(424, &[0, 0, 0, 0]).await?, -3);
        assert_eq!(p.call(247, &[3, 0, DATA + 0x100, 4, 0]).await?, -10);
        // clone makes the descriptor together with the process.
        const PIDFD: u64 = 0x1000;
        p.spawn(56, &[PIDFD | 17, 0, DATA + 0x200, 0, 0], |p| {
            Box::pin(async move {
                assert_eq!(p.call(72, &[1, 1]).await?, -9, "the child does not have it");
                p.exit(9).await
            })
        })
        .await?;
        assert_eq!(p.load_u32(DATA + 0x200).await?, 1);
        assert_eq!(p.call(247, &[3, 1, DATA + 0x100, 4, 0]).await?, 0);
        assert_eq!(p.load_u32(DATA + 0x100 + 24).await?, 9);
        Ok(())
    });
}

#[test]
fn inotify_events_are_read_as_structures() {
    run(async |p| {
        assert_eq!(p.call(294, &[0o4000]).await?, 0);
        let root = p.string(DATA, "/").await?;
        assert_eq!(p.call(254, &[0, root, 0]).await?, -22);
        assert_eq!(p.call(254, &[0, root, 0x100 | 0x200]).await?, 1);
        assert_eq!(p.call(0, &[0, DATA + 0x100, 64]).await?, EAGAIN);
        let file = p.string(DATA + 0x40, "/made").await?;
        let open = p.call(85, &[file, 0o644]).await? as u64;
        assert_eq!(p.call(3, &[open]).await?, 0);
        assert_eq!(p.call(0, &[0, DATA + 0x100, 16]).await?, -22, "it does not fit");
        assert_eq!(p.call(0, &[0, DATA + 0x100, 64]).await?, 32);
        let event: [u8; 32] = p.load(DATA + 0x100).await?;
        let expected = [1u32.to_le_bytes(), 0x100u32.to_le_bytes(), [0; 4], 16u32.to_le_bytes()].concat();
        assert_eq!((&event[..16], &event[16..22]), (&expected[..], &b"made\0\0"[..]));
        assert_eq!(p.call(255, &[0, 1]).await?, 0);
        assert_eq!(p.call(255, &[0, 1]).await?, -22);
        assert_eq!(p.call(0, &[0, DATA + 0x100, 64]).await?, 16);
        assert_eq!(p.load_u32(DATA + 0x104).await?, 0x8000);
        Ok(())
    });
}

#[test]
fn a_process_above_its_limit_of_processor_time_ends() {
    run(async |p| {
        p.fork(|p| {
            Box::pin(async move {
                p.store(DATA, &bytes(&[1, 2])).await?;
                assert_eq!(p.call(160, &[0, DATA]).await?, 0);
                let seen = std::rc::Rc::new(std::cell::Cell::new(0));
                let count = seen.clone();
                p.handle(24, 0, move |_| {
                    count.set(count.get() + 1);
                    Box::pin(async { Ok(()) })
                })
                .await?;
                for (milliseconds, warnings) in [(900, 0), (200, 1), (800, 1)] {
                    p.use_processor(milliseconds);
                    p.call(39, &[]).await?;
                    assert_eq!(seen.get(), warnings);
                }
                p.use_processor(200);
                p.call(39, &[]).await?;
                panic!("it lives beyond its hard limit");
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?, (2, 9));
        Ok(())
    });
}

#[test]
fn writing_through_a_shared_mapping_changes_the_times_of_the_file() {
    const STAT: u64 = DATA + 0x1000;
    /// The times of last change of the contents and of the file, in nanoseconds.
    async fn times(p: &mut Program, file: u64) -> Result<[u64; 2], world::Gone> {
        assert_eq!(p.call(5, &[file, STAT]).await?, 0);
        let mut times = [0; 2];
        for (time, at) in times.iter_mut().zip([88, 104]) {
            *time = p.load_u64(STAT + at).await? * 1_000_000_000 + p.load_u64(STAT + at + 8).await?;
        }
        Ok(times)
    }
    run(async |p| {
        let path = p.string(DATA, "/file").await?;
        let file = p.call(2, &[path, 0o102, 0o644]).await? as u64;
        assert_eq!(p.call(1, &[file, DATA, 4096]).await?, 4096);
        assert_eq!(p.call(77, &[file, 3 * 4096]).await?, 0);
        let shared = p.call(9, &[0, 3 * 4096, 3, 1, file, 0]).await? as u64;
        let private = p.call(9, &[0, 3 * 4096, 3, 2, file, 0]).await? as u64;
        let begun = times(p, file).await?;
        p.pass(1000).await?;
        p.load_u64(shared).await?;
        p.load_u64(shared + 4096).await?;
        p.store(private, b"own").await?;
        assert_eq!(times(p, file).await?, begun, "it was only read, and written in a copy");
        // The first page has been read, the second one too, but has no contents, the third is new.
        let mut last = begun;
        for page in [0, 1, 2, 0] {
            p.pass(1000).await?;
            p.store(shared + 4096 * page, b"new").await?;
            p.pass(5000).await?;
            let now = times(p, file).await?;
            assert!(now[0] > last[0] && now[0] == now[1], "page {page}: {now:?} after {last:?}");
            assert!(now[0] < last[0] + 3_000_000, "the time of the write, not that of the question");
            p.pass(1000).await?;
            assert_eq!(times(p, file).await?, now, "page {page}: asked again");
            last = now;
            p.pass(1000).await?;
            last[0] += 7_000_000;
        }
        // msync marks what was written before, so that what is written after it counts again.
        p.store(shared, b"one").await?;
        assert_eq!(p.call(26, &[shared, 4096, 1]).await?, 0);
        p.pass(10_000).await?;
        p.store(shared, b"two").await?;
        let now = times(p, file).await?;
        assert!(now[0] > last[0] + 9_000_000, "{now:?} after {last:?}");
        // A time that is set after a write is not changed by it, and a call's time is a later one.
        p.store(shared, b"three").await?;
        p.store(STAT, &bytes(&[5, 6, 7, 8])).await?;
        assert_eq!(p.call(280, &[file, 0, STAT, 0]).await?, 0);
        assert_eq!(times(p, file).await?[0], 7_000_000_008);
        p.store(shared, b"four").await?;
        p.pass(5000).await?;
        assert_eq!(p.call(18, &[file, DATA, 1, 0]).await?, 1);
        let now = times(p, file).await?;
        p.pass(1000).await?;
        assert_eq!(times(p, file).await?, now);
        assert!(now[0] == now[1] && now[0] > last[0] + 14_000_000);
        // What is written before the mapping goes is known afterwards, with its time.
        p.store(shared + 4096, b"five").await?;
        assert_eq!(p.call(11, &[shared, 3 * 4096]).await?, 0);
        p.pass(5000).await?;
        let ended = times(p, file).await?;
        assert!(ended[0] > now[0] && ended[0] < now[0] + 3_000_000);
        // So is what the server writes for the program, here what it reads from the file itself.
        let shared = p.call(9, &[0, 4096, 3, 1, file, 0]).await? as u64;
        p.pass(1000).await?;
        assert_eq!(p.call(17, &[file, shared, 100, 4096]).await?, 100);
        assert!(times(p, file).await?[0] > ended[0]);
        Ok(())
    });
}
