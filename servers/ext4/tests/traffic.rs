//! How often the file server asks for the disk.

#![allow(unreachable_pub, reason = "the common module is shared by test programs")]

mod common;

use common::{Client, FILE, ROOT, mkfs};
use ninep::Call;

/// A file that is made, stored and removed again changes the same few blocks each time. They are
/// not read for each change, and a commit writes them by few requests.
#[test]
fn changes_of_the_same_blocks_ask_little_of_the_disk() {
    const ROUNDS: u64 = 200;
    let disk = mkfs(64, &["-b", "4096"]);
    let mut client = Client::mount(&disk, false).unwrap();
    let requests = || {
        let state = disk.0.lock().unwrap();
        (state.reads, state.writes)
    };
    let before = requests();
    for _ in 0..ROUNDS {
        let (fid, _) = client.make(ROOT, "small", FILE).unwrap();
        client.call(&Call::Place { fid, offset: 0, length: 4096 }, |body| body.mapped()).unwrap();
        client.perform(&Call::Written { fid, offset: 0, length: 4096, size: 4096 }).unwrap();
        client.sync().unwrap();
        client.unlink(ROOT, "small", false).unwrap();
        client.forget(fid).unwrap();
    }
    let after = requests();
    let (reads, writes) = (after.0 - before.0, after.1 - before.1);
    assert!(reads < ROUNDS, "{reads} reads");
    assert!(writes < 4 * ROUNDS, "{writes} writes");
    client.end();
}
