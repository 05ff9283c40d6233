//! What those who watch are told.

use super::{Event, Events, Notifier, WatchHow};
use crate::testing::{World, now};
use crate::vfs::{At, Mode, OpenFlags, RenameHow};
use crate::{Bytes, Error};
use std::sync::Arc;

fn text(event: &Event) -> Vec<u8> {
    let name = String::from_utf8_lossy(&event.name).into_owned();
    format!("{} {:?} {name}{}\n", event.watch, event.events, if event.cookie > 0 { "+" } else { "" })
        .into_bytes()
}

struct Told {
    world: World,
    file: Arc<crate::file::OpenFile>,
    notifier: Arc<Notifier>,
}

impl Told {
    fn new() -> Told {
        let file = Notifier::create(text, OpenFlags::NONBLOCK);
        let notifier = file.object_as().unwrap();
        Told { world: World::new(), file, notifier }
    }

    fn watch(&self, path: &str, events: Events, once: bool, how: WatchHow) -> crate::Result<i32> {
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
fn a_directory_tells_what_happens_in_it() {
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
    assert_eq!(told.read(), "1 (DELETE_SELF | DIRECTORY) \n1 (IGNORED) \n");
    assert_eq!(told.notifier.unwatch(1), Err(Error::EINVAL));
}

#[test]
fn a_file_tells_what_it_was_asked_for() {
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
