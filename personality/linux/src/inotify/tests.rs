//! Tests of what the watches of inotify report.

use super::{Event, Events, Notifier, WatchHow};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use unix::account::{Account, Kept, Setting, Settings};
use unix::testing::{World, now};
use unix::vfs::{At, Mode, OpenFlags, RenameHow};
use unix::{Bytes, Error};

fn text(event: &Event) -> Vec<u8> {
    let name = String::from_utf8_lossy(&event.name).into_owned();
    format!("{} {:?} {name}{}\n", event.watch, event.events, if event.cookie > 0 { "+" } else { "" })
        .into_bytes()
}

struct Told {
    world: World,
    file: Arc<unix::file::OpenFile>,
    notifier: Arc<Notifier>,
}

impl Told {
    fn new() -> Told {
        let world = World::new();
        let file = Notifier::create(&world.process.account, text, OpenFlags::NONBLOCK).unwrap();
        let notifier = file.object_as().unwrap();
        Told { world, file, notifier }
    }

    fn watch(&self, path: &str, events: Events, once: bool, how: WatchHow) -> unix::Result<i32> {
        let place = now(self.world.caller().find(&At::Current, path.as_bytes(), true))?.location;
        self.notifier.watch(&place.vnode, events, once, how)
    }

    fn read(&self) -> String {
        let mut to = Bytes::empty(4096);
        match now(self.file.read(&self.world.caller(), &mut to)) {
            Ok(count) => String::from_utf8(to.done()[..count].to_vec()).unwrap().replace("Events", ""),
            Err(Error::EAGAIN) => String::new(),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn write(&self, path: &str, contents: &[u8]) {
        let caller = self.world.caller();
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let file = now(caller.open(&At::Current, path.as_bytes(), flags, Mode::new(0o644))).unwrap();
        assert_eq!(now(file.write(&caller, &mut Bytes::of(contents))), Ok(contents.len()));
    }

    fn remove(&self, path: &str) {
        now(self.world.caller().unlink(&At::Current, path.as_bytes())).unwrap();
    }
}

#[test]
fn a_write_that_is_cut_short_is_reported() {
    let mut told = Told::new();
    told.write("/f", b"");
    assert_eq!(told.watch("/f", Events::MODIFY, false, WatchHow::New), Ok(1));
    told.world.file_size_limit = 10;
    let file = told.world.open("/f", OpenFlags::WRITE).unwrap();
    assert_eq!(told.world.write(&file, &[1; 20]), Ok(10));
    assert_eq!(told.read(), "1 (MODIFY) \n");
    assert_eq!(told.world.write(&file, &[1; 20]), Err(Error::EFBIG));
    assert_eq!(told.read(), "", "nothing was written");
}

#[test]
fn a_transfer_that_a_signal_interrupts_is_reported() {
    let told = Told::new();
    told.write("/f", b"");
    assert_eq!(told.watch("/f", Events::MODIFY | Events::ACCESS, false, WatchHow::New), Ok(1));
    let file = told.world.open("/f", OpenFlags::READ_WRITE).unwrap();
    let caller = told.world.caller();
    // The transfer is so long that it lets other tasks run, when a signal can interrupt it.
    let mut bytes = Bytes::of(&[1; 1 << 20]);
    assert!(begun(file.write_at(&caller, 0, &mut bytes)));
    assert_eq!(told.read(), "1 (MODIFY) \n");
    let mut bytes = Bytes::empty(1 << 20);
    assert!(begun(file.read_at(&caller, 0, &mut bytes)));
    assert_eq!(told.read(), "1 (ACCESS) \n");
}

/// Polls a future once, and drops it. Returns whether it was not complete.
fn begun(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[test]
fn a_watched_directory_reports_changes_in_it() {
    let told = Told::new();
    let caller = told.world.caller();
    now(caller.make_directory(&At::Current, b"/d", Mode::new(0o755))).unwrap();
    assert_eq!(told.watch("/d", Events::all(), false, WatchHow::New), Ok(1));
    told.write("/d/a", b"text");
    assert_eq!(told.read(), "1 (CREATE) a\n1 (OPEN) a\n1 (MODIFY) a\n1 (CLOSE_WRITE) a\n");
    told.write("/elsewhere", b"text");
    assert_eq!(told.read(), "");
    now(caller.rename(&At::Current, b"/d/a", &At::Current, b"/d/b", RenameHow::Replace)).unwrap();
    assert_eq!(told.read(), "1 (MOVED_FROM) a+\n1 (MOVED_TO) b+\n");
    now(caller.make_directory(&At::Current, b"/d/sub", Mode::new(0o755))).unwrap();
    told.remove("/d/b");
    now(caller.remove_directory(&At::Current, b"/d/sub")).unwrap();
    assert_eq!(told.read(), "1 (CREATE | DIRECTORY) sub\n1 (DELETE) b\n1 (DELETE | DIRECTORY) sub\n");
    now(caller.remove_directory(&At::Current, b"/d")).unwrap();
    assert_eq!(told.read(), "1 (DELETE_SELF) \n1 (IGNORED) \n");
    assert_eq!(told.notifier.unwatch(1), Err(Error::EINVAL));
}

#[test]
fn a_watched_file_reports_the_events_that_were_asked_for() {
    let told = Told::new();
    told.write("/f", b"");
    let id = told.watch("/f", Events::MODIFY, false, WatchHow::New).unwrap();
    assert_eq!(told.watch("/f", Events::MODIFY, false, WatchHow::New), Err(Error::EEXIST));
    assert_eq!(told.watch("/f", Events::DELETE_SELF, false, WatchHow::Add), Ok(id));
    told.write("/f", b"x");
    told.write("/f", b"y");
    assert_eq!(told.read(), "1 (MODIFY) \n", "equal events are one");
    told.remove("/f");
    assert_eq!(told.read(), "1 (DELETE_SELF) \n1 (IGNORED) \n");
    told.write("/g", b"");
    assert_eq!(told.watch("/g", Events::OPEN, true, WatchHow::Replace), Ok(2));
    told.write("/g", b"");
    told.write("/g", b"");
    assert_eq!(told.read(), "2 (OPEN) \n2 (IGNORED) \n", "once only");
    assert_eq!(told.watch("/g", Events::OPEN, false, WatchHow::Replace), Ok(3));
    assert_eq!(told.notifier.unwatch(3), Ok(()));
    assert_eq!(told.read(), "3 (IGNORED) \n");
}

#[test]
fn the_instances_watches_and_events_of_a_user_are_limited() {
    let mut world = World::new();
    world.mkdir("/d");
    world.become_user(1000, 1000);
    // The account has little memory for events.
    world.process.account = Account::new(1000, Settings::new(2000));
    let account = world.process.account.clone();
    for (setting, value) in [(Setting::ChangeQueues, 2), (Setting::ObservedFiles, 2)] {
        account.settings().set(setting, value);
    }
    let make = || Notifier::create(&account, text, OpenFlags::NONBLOCK);
    let files = [make().unwrap(), make().unwrap()];
    assert!(matches!(make(), Err(Error::EMFILE)));
    let [first, second] = files.each_ref().map(|file| file.object_as::<Notifier>().unwrap());
    let find = |path: &[u8]| now(world.caller().find(&At::Current, path, true)).unwrap().location.vnode;
    let watch =
        |notifier: &Notifier, path| notifier.watch(&find(path), Events::all(), false, WatchHow::Replace);
    assert_eq!((watch(&first, b"/d"), watch(&second, b"/d")), (Ok(1), Ok(1)));
    assert_eq!((watch(&first, b"/d"), watch(&first, b"/")), (Ok(1), Err(Error::ENOSPC)));
    assert_eq!(second.unwatch(1), Ok(()));
    assert_eq!(watch(&first, b"/"), Ok(2));
    // The account's 1000 bytes are enough for six events; the seventh reports that there were more.
    for watch in 10..20 {
        first.add(Event { watch, events: Events::OPEN, cookie: 0, name: vec![b'n'; 30] });
    }
    let mut to = Bytes::empty(4096);
    let count = now(files[0].read(&world.caller(), &mut to)).unwrap();
    let told = String::from_utf8(to.done()[..count].to_vec()).unwrap();
    assert_eq!(told.lines().count(), 6);
    assert!(told.ends_with("-1 Events(OVERFLOW) \n"));
    drop((files, first, second));
    let left = [Kept::ChangeQueues, Kept::ObservedFiles, Kept::ServerMemory];
    assert_eq!(left.map(|kept| account.amount(kept)), [0; 3]);
}
