use super::*;
use crate::testing::{TestEnvironment, World, now};
use crate::vfs::MountFlags;
use crate::{BoxFuture, Seeding, Timestamp};
use core::time::Duration;
use std::sync::{Arc, Mutex};

/// An environment whose random source begins without a seed, and which records what is mixed in.
struct Unseeded {
    of: Arc<TestEnvironment>,
    seeding: Seeding,
    mixed: Mutex<Vec<Vec<u8>>>,
}

impl Environment for Unseeded {
    fn realtime(&self) -> Timestamp {
        self.of.realtime()
    }
    fn monotonic(&self) -> Duration {
        self.of.monotonic()
    }
    fn fill_random(&self, bytes: &mut [u8]) {
        self.of.fill_random(bytes);
    }
    fn stir(&self, bytes: &[u8]) {
        self.mixed.lock().unwrap().push(bytes.to_vec());
        self.of.stir(bytes);
    }
    fn seeding(&self) -> Option<&Seeding> {
        Some(&self.seeding)
    }
    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        self.of.sleep_until(deadline)
    }
}

/// What a start of the system made of the file with the seed.
struct Start {
    is_seeded: bool,
    mixed: Vec<Vec<u8>>,
    log: Vec<String>,
}

fn start(w: &World) -> Start {
    let environment =
        Unseeded { of: w.environment.clone(), seeding: Seeding::default(), mixed: Mutex::default() };
    let log = Mutex::new(Vec::new());
    let note = |line: Arguments<'_>| log.lock().unwrap().push(line.to_string());
    now(load(&w.caller(), &environment, &note));
    Start {
        is_seeded: environment.seeding.is_seeded(),
        mixed: environment.mixed.into_inner().unwrap(),
        log: log.into_inner().unwrap(),
    }
}

fn world() -> World {
    let w = World::new();
    w.mkdir("/var");
    w.mkdir("/var/lib");
    w
}

fn set_mode(w: &World, mode: u16) {
    let found = now(w.caller().find(&At::Current, FILE.as_bytes(), true)).unwrap();
    now(w.caller().change_mode(&found.location, Mode::new(mode))).unwrap();
}

#[test]
fn each_start_uses_the_seed_of_the_one_before_once() {
    let w = world();
    let first = start(&w);
    assert!(!first.is_seeded && first.mixed.is_empty());
    assert_eq!(first.log, ["random: no seed of an earlier start: there is no /var/lib/random-seed"]);
    let mut seeds = vec![w.cat(FILE).unwrap()];
    for _ in 0..3 {
        let next = start(&w);
        assert!(next.is_seeded);
        assert_eq!(next.mixed, [seeds.last().unwrap().clone()]);
        assert_eq!(next.log, ["random: seeded by /var/lib/random-seed"]);
        seeds.push(w.cat(FILE).unwrap());
        now(keep(&w.caller(), &*w.environment)).unwrap();
        seeds.push(w.cat(FILE).unwrap());
    }
    let count = seeds.len();
    assert!(seeds.iter().all(|seed| seed.len() == SIZE));
    seeds.sort();
    seeds.dedup();
    assert_eq!(seeds.len(), count);
    let metadata = now(w.caller().status(&At::Current, FILE.as_bytes(), false, false)).unwrap();
    assert_eq!((metadata.mode, metadata.user), (Mode::new(0o600), 0));
    assert_eq!(w.list("/var/lib").unwrap(), ["random-seed"]);
}

/// Damages the file with the seed.
type Spoil = fn(&World);

/// Each kind of bad file is named, not relied on, and replaced by a good one.
#[test]
fn a_file_that_may_be_known_to_others_or_is_damaged_is_ignored() {
    let spoilt: [(&str, Spoil); 6] = [
        ("not the superuser's alone", |w| set_mode(w, 0o644)),
        ("not the superuser's alone", |w| {
            let found = now(w.caller().find(&At::Current, FILE.as_bytes(), true)).unwrap();
            now(w.caller().change_owner(&found.location, Some(1000), None)).unwrap();
        }),
        ("has 511 bytes", |w| now(w.caller().truncate(&At::Current, FILE.as_bytes(), 511)).unwrap()),
        ("has 0 bytes", |w| now(w.caller().truncate(&At::Current, FILE.as_bytes(), 0)).unwrap()),
        ("has 600 bytes", |w| now(w.caller().truncate(&At::Current, FILE.as_bytes(), 600)).unwrap()),
        ("no regular file", |w| {
            w.put("/elsewhere", &[7; SIZE]);
            now(w.caller().unlink(&At::Current, FILE.as_bytes())).unwrap();
            w.symlink("/elsewhere", FILE);
        }),
    ];
    for (why, spoil) in spoilt {
        let w = world();
        start(&w);
        spoil(&w);
        let next = start(&w);
        assert!(!next.is_seeded && next.mixed.is_empty(), "{why}");
        assert!(next.log.len() == 1 && next.log[0].contains(why), "{:?}", next.log);
        assert!(start(&w).is_seeded, "{why}: another one was kept");
    }
}

/// A directory in the place of the file stays, and what was begun is removed.
#[test]
fn what_cannot_be_replaced_is_reported() {
    let w = world();
    w.mkdir(FILE);
    let next = start(&w);
    assert!(!next.is_seeded && next.log[0].contains("no regular file"), "{:?}", next.log);
    assert_eq!(next.log[1], "random: no seed is kept: EISDIR");
    assert_eq!(w.list("/var/lib").unwrap(), ["random-seed"]);
}

/// A seed that the next start would find again is mixed in, but not relied on.
#[test]
fn a_root_that_can_only_be_read_does_not_seed() {
    let w = world();
    start(&w);
    let seed = w.cat(FILE).unwrap();
    now(w.caller().remount(b"/", MountFlags::READ_ONLY, false, Some(b""))).unwrap();
    let next = start(&w);
    assert!(!next.is_seeded);
    assert_eq!(next.mixed, [seed]);
    let log = "random: /var/lib/random-seed is not relied on, since it cannot be replaced: EROFS";
    assert_eq!(next.log, [log]);
}

#[test]
fn what_a_start_without_an_end_has_left_is_overwritten() {
    let w = world();
    start(&w);
    w.put(NEXT, b"half");
    assert!(start(&w).is_seeded);
    assert_eq!(w.list("/var/lib").unwrap(), ["random-seed"]);
    assert_eq!(w.cat(FILE).unwrap().len(), SIZE);
}
