//! Power cuts: what a disk may hold after any of them is mounted, has everything that was brought
//! to stable storage, and e2fsck finds nothing wrong with it. `EXT4_CUTS` says how many cuts are
//! tried.

#![allow(unreachable_pub, reason = "the common module is shared by test programs")]

mod common;

use common::*;
use std::collections::BTreeMap;

/// What a file has: its own byte, so often.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Contents {
    byte: u8,
    size: usize,
}

/// Files by directory and name.
type Files = BTreeMap<(usize, String), Contents>;

/// The files after each synchronization, and the names that were touched since then.
#[derive(Default)]
struct Points {
    synced: Vec<Files>,
    touched: Vec<Vec<(usize, String)>>,
}

const DIRECTORIES: usize = 3;

/// Runs a workload of so many steps. Returns the recorded writes and the points.
fn workload(disk: &Disk, steps: usize, seed: u64) -> (Vec<Event>, Points) {
    let mut random = Random(seed);
    let mut client = Client::mount(disk, false).unwrap();
    let directories: Vec<u32> = (0..DIRECTORIES)
        .map(|number| client.make(ROOT, &format!("d{number}"), DIRECTORY).unwrap().0)
        .collect();
    client.sync().unwrap();
    disk.record();
    let mut points = Points { synced: vec![Files::new()], touched: vec![Vec::new()] };
    let mut files = Files::new();
    let mut next = 0_u8;
    for _ in 0..steps {
        let place = random.below(DIRECTORIES as u64) as usize;
        let any = files.keys().nth(random.below(files.len().max(1) as u64) as usize).cloned();
        let mut touch = |key: &(usize, String)| points.touched.last_mut().unwrap().push(key.clone());
        match (random.below(12), any) {
            (0..4, _) => {
                next = next % 250 + 1;
                let key = (place, format!("f{next}"));
                let contents = Contents { byte: next, size: random.below(60_000) as usize };
                if files.contains_key(&key) {
                    continue;
                }
                touch(&key);
                let (file, _) = client.make(directories[place], &key.1, FILE).unwrap();
                client.write(file, 0, &vec![contents.byte; contents.size]).unwrap();
                client.forget(file).unwrap();
                files.insert(key, contents);
            }
            (4, Some(key)) => {
                touch(&key);
                client.unlink(directories[key.0], &key.1, false).unwrap();
                files.remove(&key);
            }
            (5, Some(key)) => {
                let to = (place, format!("{}r", key.1));
                touch(&key);
                touch(&to);
                client.rename((directories[key.0], &key.1), (directories[to.0], &to.1), false).unwrap();
                let contents = files.remove(&key).unwrap();
                files.insert(to, contents);
            }
            (6, Some(key)) => {
                touch(&key);
                let (file, _) = client.find(directories[key.0], &key.1).unwrap();
                let contents = files.get_mut(&key).unwrap();
                contents.size = random.below(contents.size as u64 + 1) as usize;
                client.truncate(file, contents.size as u64).unwrap();
                client.forget(file).unwrap();
            }
            (7, Some(key)) => {
                touch(&key);
                let (file, _) = client.find(directories[key.0], &key.1).unwrap();
                let contents = files.get_mut(&key).unwrap();
                let more = random.below(20_000) as usize;
                client.write(file, contents.size as u64, &vec![contents.byte; more]).unwrap();
                contents.size += more;
                client.forget(file).unwrap();
            }
            (8, Some(key)) => {
                // A file without a name, which is freed some time.
                touch(&key);
                let _ = client.find(directories[key.0], &key.1).unwrap();
                client.unlink(directories[key.0], &key.1, false).unwrap();
                files.remove(&key);
            }
            (9..11, _) => {
                client.sync().unwrap();
                disk.note(points.synced.len());
                points.synced.push(files.clone());
                points.touched.push(Vec::new());
            }
            _ => {}
        }
    }
    (disk.log(), points)
}

/// Checks what is there after a cut. Names that were touched since the last synchronization may
/// have any state, but only their own bytes.
fn check(data: Vec<u8>, points: &Points, point: usize) -> Result<(), String> {
    let disk = Disk::of(data);
    let mut client = Client::mount(&disk, false).map_err(|error| format!("no mount: {error:?}"))?;
    let mut found = Files::new();
    for place in 0..DIRECTORIES {
        let name = format!("d{place}");
        let (directory, _) = client.find(ROOT, &name).map_err(|_| format!("{name} is missing"))?;
        for (name, _, _) in client.list(directory, 4096).map_err(|error| format!("{error:?}"))? {
            if name.starts_with('.') {
                continue;
            }
            let (file, _) = client.find(directory, &name).map_err(|error| format!("{name}: {error:?}"))?;
            let bytes = client.read_all(file).map_err(|error| format!("{name}: {error:?}"))?;
            let byte: u8 = name.trim_matches(|letter| letter == 'f' || letter == 'r').parse().unwrap();
            if let Some(other) = bytes.iter().find(|&&other| other != byte && other != 0) {
                return Err(format!("{name} has the byte {other} of another file"));
            }
            let own = bytes.iter().filter(|&&other| other == byte).count();
            if own == bytes.len() {
                found.insert((place, name), Contents { byte, size: bytes.len() });
            }
        }
    }
    let touched: Vec<_> = points.touched[point..].iter().flatten().collect();
    for (key, contents) in points.synced[point].iter().filter(|(key, _)| !touched.contains(key)) {
        if found.get(key) != Some(contents) {
            return Err(format!("{key:?} should be {contents:?} and is {:?}", found.get(key)));
        }
    }
    client.unmount().map_err(|error| format!("no unmount: {error:?}"))?;
    match fsck(&disk.data()) {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(wrong),
    }
}

#[test]
fn nothing_that_was_stored_is_lost_by_a_power_cut() {
    let cuts: u64 = campaign("EXT4_CUTS", 60);
    let per_workload = 20;
    for seed in 1..=cuts.div_ceil(per_workload) {
        let block = ["4096", "1024"][seed as usize % 2];
        let disk = mkfs(16, &["-b", block]);
        // The recording begins after the first steps of the workload, which are on this disk.
        let (log, points) = {
            let recorded = Disk::of(disk.data());
            let result = workload(&recorded, 150, seed * 7919);
            drop(recorded);
            result
        };
        // The disk as it was when the recording began.
        let before = {
            let copy = Disk::of(disk.data());
            let _ = workload(&copy, 0, seed * 7919);
            copy.data()
        };
        let mut random = Random(seed * 104_729);
        for _ in 0..per_workload {
            let end = random.below(log.len() as u64 + 1) as usize;
            let (data, point) = cut(&before, &log, end, &mut random);
            if let Err(wrong) = check(data, &points, point) {
                panic!("workload {seed}, {end} of {} events: {wrong}", log.len());
            }
        }
    }
}
