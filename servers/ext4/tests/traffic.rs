//! How often the file server asks for the disk.

mod common;

use common::{Client, FILE, DIRECTORY, ROOT, mkfs};
use ninep::Call;

#[test]
fn load() {
    let disk = mkfs(64, &[]);
    let mut client = Client::mount(&disk, false).unwrap();
    let rounds: u64 = std::env::var("ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(100);
    let mode = std::env::var("MODE").unwrap_or_default();
    let before = { let state = disk.0.lock().unwrap(); (state.reads, state.writes) };
    if mode == "small" {
        for _ in 0..rounds {
            let (fid, _) = client.make(ROOT, "small", FILE).unwrap();
            let call = Call::Place { fid, offset: 0, length: 4096 };
            client.call(&call, |body| body.mapped()).unwrap();
            client.perform(&Call::Written { fid, offset: 0, length: 4096, size: 4096 }).unwrap();
            client.change(fid, Default::default()).unwrap();
            client.sync().unwrap();
            client.unlink(ROOT, "small", false).unwrap();
            client.forget(fid).unwrap();
        }
    } else {
        for directory in 0..rounds / 50 {
            let (at, _) = client.make(ROOT, &format!("d{directory}"), DIRECTORY).unwrap();
            for number in 0..50 {
                let (fid, _) = client.make(at, &format!("file-{number}.h"), FILE).unwrap();
                let call = Call::Place { fid, offset: 0, length: 8192 };
                client.call(&call, |body| body.mapped()).unwrap();
                client.perform(&Call::Written { fid, offset: 0, length: 8192, size: 8000 }).unwrap();
                client.change(fid, Default::default()).unwrap();
                client.forget(fid).unwrap();
            }
        }
        client.sync().unwrap();
        if mode == "rm" {
            for directory in 0..rounds / 50 {
                let (at, _) = client.find(ROOT, &format!("d{directory}")).unwrap();
                for number in 0..50 {
                    client.unlink(at, &format!("file-{number}.h"), false).unwrap();
                }
            }
            client.sync().unwrap();
        }
    }
    let state = disk.0.lock().unwrap();
    println!("{} reads, {} writes", (state.reads - before.0) as f64 / rounds as f64, (state.writes - before.1) as f64 / rounds as f64);
}
