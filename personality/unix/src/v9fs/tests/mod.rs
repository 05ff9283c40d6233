//! The file system over a simulated server.

mod server;

use super::*;
use crate::testing::{TestEnvironment, World, memory, now};
use crate::vfs::{
    At, AttributeCondition, FileMemory, Mode, MountFlags, NewAttributes, OpenFlags, RenameHow, WriteAt,
};
use crate::{Bytes, UserBuffer};
use server::{OneServer, Server};

const READ: OpenFlags = OpenFlags::READ;
const CREATE: OpenFlags = OpenFlags::READ_WRITE.union(OpenFlags::CREATE);

fn kind(server: &Arc<Server>, environment: &Arc<TestEnvironment>) -> V9fsType {
    V9fsType {
        servers: Arc::new(OneServer(server.clone())),
        memory: memory(),
        environment: environment.clone(),
    }
}

/// A world whose root directory is the server's.
fn world(server: &Arc<Server>) -> World {
    let environment = TestEnvironment::new();
    let root = now(kind(server, &environment).make(b"share", b"trans=virtio")).unwrap();
    World::on(root, environment)
}

#[test]
fn both_sides_see_what_the_other_does() {
    let server = Server::new(8192);
    let w = world(&server);
    w.mkdir("/d");
    w.put("/d/f", b"made in the guest");
    assert_eq!(server.content("/d/f").unwrap(), b"made in the guest");
    server.put("/d/host", b"made on the host");
    assert_eq!(w.cat("/d/host").unwrap(), b"made on the host");
    server.put("/d/f", b"changed");
    assert_eq!(w.cat("/d/f").unwrap(), b"changed");
    w.symlink("d/f", "/link");
    assert_eq!(w.cat("/link").unwrap(), b"changed");
    assert_eq!(w.list("/d").unwrap(), ["f", "host"]);
    assert_eq!(w.cat("/d/missing"), Err(Error::ENOENT));
    assert_eq!(w.cat("/d/f/x"), Err(Error::ENOTDIR));
}

#[test]
fn large_files_pass_in_pieces() {
    let server = Server::new(4096);
    let w = world(&server);
    let content: Vec<u8> = (0..50_000_u32).map(|at| (at / 7) as u8).collect();
    w.put("/f", &content);
    assert!(server.content("/f").unwrap() == content);
    assert!(w.cat("/f").unwrap() == content);
    let file = w.open("/f", OpenFlags::READ_WRITE).unwrap();
    now(file.truncate(&w.caller(), 49_000)).unwrap();
    assert_eq!(file.metadata().size, 49_000);
    let append = w.open("/f", OpenFlags::WRITE | OpenFlags::APPEND).unwrap();
    // The host appends, too.
    server.put("/f", b"short");
    assert_eq!(w.write(&append, b" more"), Ok(5));
    assert_eq!(server.content("/f").unwrap(), b"short more");
    assert_eq!((append.metadata().size, file.metadata().size), (10, 10));
}

#[test]
fn names_change_as_in_any_file_system() {
    let server = Server::new(8192);
    let w = world(&server);
    let caller = w.caller();
    let here = At::Current;
    w.mkdir("/a");
    w.mkdir("/b");
    w.put("/a/f", b"1");
    w.put("/b/g", b"2");
    now(caller.rename(&here, b"/a/f", &here, b"/b/g", RenameHow::Replace)).unwrap();
    assert_eq!((server.at("/a/f"), server.content("/b/g").unwrap()), (None, b"1".to_vec()));
    let exchanged = now(caller.rename(&here, b"/a", &here, b"/b", RenameHow::Exchange));
    assert_eq!(exchanged, Err(Error::EINVAL));
    now(caller.link(&here, b"/b/g", false, false, &here, b"/a/h")).unwrap();
    let status = now(caller.status(&here, b"/a/h", true, false)).unwrap();
    assert_eq!((status.links, status.number), (2, server.at("/b/g").unwrap()));
    assert_eq!(now(caller.remove_directory(&here, b"/a")), Err(Error::ENOTEMPTY));
    let open = w.open("/a/h", READ).unwrap();
    now(caller.unlink(&here, b"/a/h")).unwrap();
    now(caller.unlink(&here, b"/b/g")).unwrap();
    assert_eq!(w.read(&open, 10).unwrap(), b"1", "an open file without a name");
    assert_eq!(open.metadata().links, 0);
    now(caller.remove_directory(&here, b"/a")).unwrap();
    assert_eq!(w.list("/").unwrap(), ["b"]);
    // A name may be given to another file afterwards.
    w.put("/b/g", b"new");
    assert_eq!(w.cat("/b/g").unwrap(), b"new");
    assert_eq!(w.open("/b/g", CREATE | OpenFlags::EXCLUSIVE).map(drop), Err(Error::EEXIST));
}

#[test]
fn a_directory_of_many_entries_is_read_in_pieces() {
    let server = Server::new(4096);
    let w = world(&server);
    let mut names: Vec<String> = (0..500).map(|number| format!("a-file-with-number-{number:04}")).collect();
    names.iter().for_each(|name| server.put(&format!("/{name}"), b""));
    let mut listed = w.list("/").unwrap();
    listed.sort();
    names.sort();
    assert_eq!(listed, names);
}

#[test]
fn attributes_are_the_servers() {
    let server = Server::new(8192);
    let w = world(&server);
    let caller = w.caller();
    w.put("/f", b"content");
    let place = now(caller.find(&At::Current, b"/f", true)).unwrap().location;
    now(caller.change_mode(&place, Mode::new(0o640))).unwrap();
    let file = server.at("/f").unwrap();
    assert_eq!(server.state.lock().unwrap().files[&file].mode, 0o100_640);
    let status = place.vnode.metadata();
    assert_eq!((status.mode, status.user, status.size), (Mode::new(0o640), 1000, 7));
    let status = now(caller.file_system_status(&place)).unwrap();
    assert_eq!((status.kind, status.blocks, status.available_blocks), ("9p", 1000, 400));
    let set = |value, condition| now(place.vnode.set_attribute(b"user.x", value, condition));
    assert_eq!(now(place.vnode.attribute(b"user.x")), Err(Error::ENODATA));
    set(Some(&b"value"[..]), AttributeCondition::Any).unwrap();
    assert_eq!(now(place.vnode.attribute(b"user.x")).unwrap(), b"value");
    assert_eq!(now(place.vnode.attributes()).unwrap(), b"user.x\0");
    set(None, AttributeCondition::Replace).unwrap();
    assert_eq!(now(place.vnode.attributes()).unwrap(), b"");
}

/// The memory of a file, as a mapping uses it.
fn mapped(w: &World, path: &str) -> Arc<dyn FileMemory> {
    w.open(path, OpenFlags::READ_WRITE).unwrap().memory(true).unwrap()
}

fn read_memory(memory: &Arc<dyn FileMemory>, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = Bytes::empty(length);
    let mut at = offset;
    while bytes.remaining() > 0 {
        match now(memory.read(at, bytes.remaining(), &mut bytes)).unwrap() {
            0 => break,
            count => at += count as u64,
        }
    }
    bytes.done().to_vec()
}

#[test]
fn pages_of_a_mapped_file_agree_with_reads_writes_and_the_server() {
    let server = Server::new(8192);
    let w = world(&server);
    w.put("/f", &[b'a'; 10_000]);
    let memory = mapped(&w, "/f");
    let file = w.open("/f", OpenFlags::READ_WRITE).unwrap();
    assert_eq!(read_memory(&memory, 9_990, 10), [b'a'; 10]);
    // Written by a call: seen in the pages, and at the server.
    now(file.write_at(&w.caller(), 4_000, &mut Bytes::of(&[b'b'; 200]))).unwrap();
    assert_eq!(read_memory(&memory, 3_999, 3), b"abb");
    assert_eq!(server.content("/f").unwrap()[3_999..4_002], *b"abb");
    // Written by a program to its mapping: seen by calls, and at the server after a sync.
    now(memory.write(9_998, 2, &mut Bytes::of(b"cd"))).unwrap();
    let mut read = Bytes::empty(2);
    now(file.read_at(&w.caller(), 9_998, &mut read)).unwrap();
    assert_eq!(read.done(), b"cd");
    assert_eq!(server.content("/f").unwrap()[9_998..], *b"aa");
    now(file.synchronize()).unwrap();
    assert_eq!(server.content("/f").unwrap()[9_998..], *b"cd");
    assert_eq!(server.content("/f").unwrap().len(), 10_000, "a page does not make the file longer");
    // The host changes the file: seen after the next open.
    server.put("/f", &[b'h'; 5_000]);
    let again = w.open("/f", READ).unwrap();
    assert_eq!(again.metadata().size, 5_000);
    assert_eq!(read_memory(&memory, 4_998, 4), b"hh\0\0");
    // The file grows by a call, beyond what the pages had.
    now(file.write_at(&w.caller(), 20_000, &mut Bytes::of(b"end"))).unwrap();
    assert_eq!(read_memory(&memory, 19_999, 4), b"\0end");
    now(file.truncate(&w.caller(), 3)).unwrap();
    assert_eq!(server.content("/f").unwrap(), b"hhh");
    now(file.truncate(&w.caller(), 6)).unwrap();
    assert_eq!(read_memory(&memory, 0, 6), b"hhh\0\0\0");
}

/// A program maps a file, writes, and ends without a sync.
#[test]
fn pages_without_mappings_are_written() {
    let server = Server::new(8192);
    let w = world(&server);
    w.put("/f", &[b'a'; 100]);
    let memory = mapped(&w, "/f");
    now(memory.write(50, 1, &mut Bytes::of(b"z"))).unwrap();
    drop(memory);
    let root = w.vfs.tree.root().vnode;
    now(root.file_system().synchronize()).unwrap();
    assert_eq!(server.content("/f").unwrap()[49..52], *b"aza");
    // Nothing is kept afterwards.
    let node: Arc<dyn core::any::Any + Send + Sync> = root;
    let root: Arc<Node> = node.downcast().unwrap();
    assert!(root.file_system.mapped.lock().is_empty());
    assert_eq!(root.file_system.nodes.lock().len(), 1, "only the root directory");
}

#[test]
fn the_server_is_told_of_every_file_that_is_not_used_any_more() {
    let server = Server::new(8192);
    let w = world(&server);
    w.put("/f", b"x");
    for _ in 0..100 {
        let _ = (w.cat("/f").unwrap(), w.list("/").unwrap(), w.cat("/missing"));
    }
    let _ = w.cat("/missing");
    assert!(server.fids() < 12, "{} fids", server.fids());
}

#[test]
fn a_server_has_one_mount_and_only_known_options() {
    let server = Server::new(8192);
    let w = world(&server);
    let kind = kind(&server, &w.environment);
    let make = |source: &[u8], options: &[u8]| now(kind.make(source, options)).map(drop);
    assert_eq!(make(b"share", b""), Err(Error::EBUSY));
    assert_eq!(make(b"other", b""), Err(Error::ENOENT));
    for options in ["trans=tcp", "version=9p2000", "msize=big", "cache=yes", "posixacl", "="] {
        assert_eq!(make(b"share", options.as_bytes()), Err(Error::EINVAL), "{options}");
    }
    drop(w);
    assert_eq!(make(b"share", b"trans=virtio,version=9p2000.L,msize=131072,cache=none,access=any"), Ok(()));
}

#[test]
fn a_server_that_is_gone_is_an_error_for_each_call() {
    let server = Server::new(8192);
    let w = world(&server);
    w.put("/f", b"x");
    let file = w.open("/f", OpenFlags::READ_WRITE).unwrap();
    server.is_gone.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(w.cat("/f"), Err(Error::EIO));
    assert_eq!(w.list("/").map(drop), Err(Error::EIO));
    assert_eq!(w.write(&file, b"y"), Err(Error::EIO));
    assert_eq!(now(file.synchronize()), Err(Error::EIO));
    assert_eq!(file.metadata().size, 1);
}

/// Everything that a program can ask for.
fn use_all(w: &World) {
    let caller = w.caller();
    let here = At::Current;
    let _ = now(caller.make_directory(&here, b"/d", Mode::new(0o755)));
    for path in ["/f", "/d/f", "/../f"] {
        if let Ok(file) = w.open(path, CREATE) {
            let _ = (w.write(&file, &[7; 9000]), w.read(&file, 100));
            let _ = now(file.truncate(&caller, 5000));
            if let Ok(memory) = file.memory(true) {
                let _ = now(memory.read(0, 9000, &mut Bytes::empty(9000)));
                let _ = now(memory.write(10, 10, &mut Bytes::of(&[1; 10])));
            }
            let _ = now(file.synchronize());
            let vnode = file.vnode().unwrap();
            let _ = (now(vnode.attribute(b"user.x")), now(vnode.attributes()));
            let _ = now(vnode.set_attribute(b"user.x", Some(b"v"), AttributeCondition::Any));
            let _ = now(vnode.write(WriteAt::End, u64::MAX, &mut Bytes::of(b"x"))).is_ok();
        }
        let _ =
            (w.cat(path), w.list("/"), w.list(path), now(caller.status(&here, path.as_bytes(), true, false)));
    }
    let _ = now(caller.make_link(b"f", &here, b"/l"));
    let _ = now(caller.read_link(&here, b"/l"));
    let _ = now(caller.rename(&here, b"/f", &here, b"/g", RenameHow::Replace));
    let _ = now(caller.link(&here, b"/g", false, false, &here, b"/h"));
    let _ = (now(caller.unlink(&here, b"/g")), now(caller.unlink(&here, b"/l")));
    let _ = now(caller.remove_directory(&here, b"/d"));
    let root = w.vfs.tree.root();
    let _ = (now(caller.file_system_status(&root)), now(root.vnode.file_system().synchronize()));
}

/// A server that changes and cuts its replies at random breaks no call, and none waits for ever.
#[test]
fn a_server_that_lies_does_no_harm() {
    for seed in 1..60_u64 {
        let server = Server::new(4096);
        let w = world(&server);
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let rate = 1 + seed % 8;
        *server.lie.lock().unwrap() = Some(Box::new(move |reply| {
            if next() % 8 >= rate || reply.is_empty() {
                return;
            }
            match next() % 4 {
                0 => reply.truncate((next() as usize) % (reply.len() + 1)),
                1 => reply.extend_from_slice(&[next() as u8; 40]),
                _ => {
                    let at = (next() as usize) % reply.len();
                    reply[at] = next() as u8;
                }
            }
        }));
        use_all(&w);
    }
}

#[test]
fn an_honest_server_has_no_errors() {
    let server = Server::new(4096);
    let w = world(&server);
    use_all(&w);
    assert_eq!(server.content("/h").unwrap().len(), 5001);
}

#[test]
fn a_mount_is_written_before_it_ends() {
    let server = Server::new(8192);
    let w = World::new();
    let root = now(kind(&server, &w.environment).make(b"share", b"")).unwrap();
    w.mkdir("/mnt");
    now(w.caller().mount(b"/mnt", root, "share", MountFlags::empty())).unwrap();
    w.put("/mnt/f", &[b'a'; 100]);
    let memory = mapped(&w, "/mnt/f");
    now(memory.write(0, 1, &mut Bytes::of(b"z"))).unwrap();
    drop(memory);
    now(w.caller().unmount(b"/mnt", false, true)).unwrap();
    assert_eq!(server.content("/f").unwrap()[..2], *b"za");
    assert_eq!(now(kind(&server, &w.environment).make(b"share", b"")).map(drop), Ok(()));
}

#[test]
fn files_without_names_are_not_made() {
    let server = Server::new(8192);
    let w = world(&server);
    let attributes = NewAttributes { mode: Mode::new(0o600), user: 0, group: 0, account: None, lists: None };
    let root = w.vfs.tree.root().vnode;
    assert_eq!(now(root.create_unnamed(attributes)).map(drop), Err(Error::EOPNOTSUPP));
}
