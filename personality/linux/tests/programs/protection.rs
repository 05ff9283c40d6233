//! Tests of what protects files and programs from programs: options of mounts, the rights of
//! mappings.

use crate::world::{DATA, Gone, Program, World, elf};
use crate::{bytes, run_in};

const EPERM: i64 = -1;
const EACCES: i64 = -13;
const EINVAL: i64 = -22;
const EOPNOTSUPP: i64 = -95;
const PAGE: u64 = 4096;
const READ: u64 = 1;
const READ_WRITE: u64 = 3;
const READ_EXECUTE: u64 = 5;
const SHARED: u64 = 1;
const PRIVATE: u64 = 2;

/// Mounts the directory /m at /b, with these options.
async fn bind(p: &mut Program, flags: u64) -> Result<(), Gone> {
    const BIND: u64 = 0x1000;
    const REMOUNT: u64 = 0x20;
    let from = p.string(DATA, "/m").await?;
    let to = p.string(DATA + 0x40, "/b").await?;
    assert_eq!(p.call(165, &[from, to, 0, BIND, 0]).await?, 0);
    assert_eq!(p.call(165, &[0, to, 0, BIND | REMOUNT | flags, 0]).await?, 0);
    Ok(())
}

async fn open(p: &mut Program, path: &str, flags: u64) -> Result<u64, Gone> {
    let path = p.string(DATA, path).await?;
    let file = p.call(2, &[path, flags, 0]).await?;
    assert!(file >= 0, "{file}");
    Ok(file as u64)
}

async fn map(p: &mut Program, rights: u64, flags: u64, file: u64) -> Result<i64, Gone> {
    p.call(9, &[0, PAGE, rights, flags, file, 0]).await
}

async fn protect(p: &mut Program, address: u64, rights: u64) -> Result<i64, Gone> {
    p.call(10, &[address, PAGE, rights]).await
}

/// Executes a program in a child; returns the child's status.
async fn execute(p: &mut Program, path: &'static str) -> Result<u32, Gone> {
    p.fork(move |p| {
        Box::pin(async move {
            let path = p.string(DATA, path).await?;
            p.store(DATA + 0x100, &bytes(&[path, 0])).await?;
            let failed = p.call(59, &[path, DATA + 0x100, 0]).await?;
            p.exit(failed.unsigned_abs()).await
        })
    })
    .await?;
    Ok(p.wait(0).await?.1)
}

#[test]
fn nothing_is_executed_on_a_mount_with_noexec() {
    const NOEXEC: u64 = 8;
    let world = World::new();
    let program = world.code(|p| Box::pin(async move { p.exit(77).await }));
    for directory in ["/m", "/b"] {
        world.make_directory(directory, 0o755);
    }
    world.install("/m/program", 0o755, &elf(program));
    world.install("/m/script", 0o755, b"#!/m/program\n");
    world.install("/script", 0o755, b"#!/b/program\n");
    run_in(&world, async |p| {
        bind(p, NOEXEC).await?;
        let denied = u32::from(EACCES.unsigned_abs() as u8) << 8;
        for (path, status) in [
            ("/m/program", 77 << 8),
            ("/m/script", 77 << 8),
            ("/b/program", denied),
            ("/b/script", denied),
            ("/script", denied),
        ] {
            assert_eq!(execute(p, path).await?, status, "{path}");
        }
        let path = p.string(DATA, "/b/program").await?;
        assert_eq!(p.call(21, &[path, 1]).await?, EACCES, "access");
        assert_eq!(p.call(21, &[path, 4]).await?, 0);
        let directory = p.string(DATA, "/b").await?;
        assert_eq!(p.call(21, &[directory, 1]).await?, 0, "a directory is searched");

        // Nor does a program get its code into its memory as code, in one step or in two.
        let (allowed, forbidden) = (open(p, "/m/program", 2).await?, open(p, "/b/program", 2).await?);
        for flags in [SHARED, PRIVATE] {
            assert!(map(p, READ_EXECUTE, flags, allowed).await? > 0);
            assert_eq!(map(p, READ_EXECUTE, flags, forbidden).await?, EPERM);
            let at = map(p, READ, flags, allowed).await? as u64;
            assert_eq!(protect(p, at, READ_EXECUTE).await?, 0);
            let at = map(p, READ_WRITE, flags, forbidden).await? as u64;
            assert_eq!(protect(p, at, READ_EXECUTE).await?, EACCES);
            assert_eq!(protect(p, at, READ).await?, 0, "other rights change");
            assert_never_gets(p, at, READ_EXECUTE).await?;
        }
        Ok(())
    });
}

/// Checks that the mapping of one page at `at` does not get `rights` either after it was moved,
/// where it has grown, or in a child.
async fn assert_never_gets(p: &mut Program, at: u64, rights: u64) -> Result<(), Gone> {
    const MAY_MOVE: u64 = 1;
    let at = p.call(25, &[at, PAGE, 3 * PAGE, MAY_MOVE]).await?;
    assert!(at > 0, "{at}");
    for page in 0..3 {
        assert_eq!(protect(p, at as u64 + page * PAGE, rights).await?, EACCES, "page {page}");
    }
    p.fork(move |p| {
        Box::pin(async move {
            assert_eq!(protect(p, at as u64, rights).await?, EACCES, "in a child");
            p.exit(0).await
        })
    })
    .await?;
    assert_eq!(p.wait(0).await?.1, 0);
    Ok(())
}

#[test]
fn set_id_bits_have_no_effect_on_a_mount_with_nosuid() {
    const NOSUID: u64 = 2;
    let world = World::new();
    // The program tells its effective ids by its status: one bit for each that is the superuser's.
    let program = world.code(|p| {
        Box::pin(async move {
            let (user, group) = (p.call(107, &[]).await?, p.call(108, &[]).await?);
            p.exit(u64::from(user == 0) | u64::from(group == 0) << 1).await
        })
    });
    for directory in ["/m", "/b"] {
        world.make_directory(directory, 0o755);
    }
    for (path, mode) in [("/m/user", 0o4755), ("/m/group", 0o2755), ("/m/lock", 0o2745), ("/m/none", 0o755)] {
        world.install(path, mode, &elf(program));
    }
    run_in(&world, async |p| {
        bind(p, NOSUID).await?;
        for (path, mode) in
            [("/m/user", 0o4755), ("/m/group", 0o2755), ("/m/lock", 0o2745), ("/m/none", 0o755)]
        {
            let path = p.string(DATA, path).await?;
            assert_eq!(p.call(90, &[path, mode]).await?, 0);
        }
        assert_eq!(p.call(119, &[1000, 1000, 1000]).await?, 0, "setresgid");
        assert_eq!(p.call(117, &[1000, 1000, 1000]).await?, 0, "setresuid");
        for (path, lent) in
            [("/m/user", 1), ("/m/group", 2), ("/m/lock", 0), ("/m/none", 0), ("/b/user", 0), ("/b/group", 0)]
        {
            assert_eq!(execute(p, path).await?, lent << 8, "{path}");
        }
        Ok(())
    });
}

#[test]
fn a_file_that_is_not_open_for_writing_is_not_written_through_a_mapping() {
    let world = World::new();
    world.install("/file", 0o644, b"as it was");
    run_in(&world, async |p| {
        let (reader, writer) = (open(p, "/file", 0).await?, open(p, "/file", 2).await?);
        assert_eq!(map(p, READ_WRITE, SHARED, reader).await?, EACCES);
        let at = map(p, READ, SHARED, reader).await? as u64;
        assert_eq!(protect(p, at, READ_WRITE).await?, EACCES);
        assert_eq!(protect(p, at, READ_EXECUTE).await?, 0, "other rights change");
        assert_never_gets(p, at, READ_WRITE).await?;
        // A copy of the process's own may be written, and the file does not change.
        let at = map(p, READ, PRIVATE, reader).await? as u64;
        assert_eq!(protect(p, at, READ_WRITE).await?, 0);
        p.store(at, b"AS").await?;
        assert_eq!(p.call(17, &[reader, DATA + 0x100, 9, 0]).await?, 9);
        assert_eq!(&p.load::<9>(DATA + 0x100).await?, b"as it was");
        // The rights are those of the open file, not of the path.
        let at = map(p, READ, SHARED, writer).await? as u64;
        assert_eq!(protect(p, at, READ_WRITE).await?, 0);
        p.store(at, b"AS").await?;
        assert_eq!(p.call(17, &[reader, DATA + 0x100, 9, 0]).await?, 9);
        assert_eq!(&p.load::<9>(DATA + 0x100).await?, b"AS it was");
        Ok(())
    });
}

#[test]
fn mmap_refuses_flags_as_its_kind_of_sharing_says() {
    const VALIDATE: u64 = 3;
    const ANONYMOUS: u64 = 0x20;
    const GROWSDOWN: u64 = 0x100;
    const NORESERVE: u64 = 0x4000;
    const SYNC: u64 = 0x8_0000;
    const FIXED_NOREPLACE: u64 = 0x10_0000;
    let world = World::new();
    world.install("/file", 0o644, b"as it was");
    run_in(&world, async |p| {
        let file = open(p, "/file", 2).await?;
        let at = map(p, READ_WRITE, VALIDATE, file).await? as u64;
        p.store(at, b"AS").await?;
        assert_eq!(p.call(17, &[file, DATA + 0x100, 9, 0]).await?, 9);
        assert_eq!(&p.load::<9>(DATA + 0x100).await?, b"AS it was", "it is shared");
        for (flags, error) in [
            (VALIDATE | NORESERVE, None),
            (VALIDATE | SYNC, Some(EOPNOTSUPP)),
            (VALIDATE | FIXED_NOREPLACE, Some(EOPNOTSUPP)),
            (VALIDATE | 1 << 40, Some(EOPNOTSUPP)),
            (VALIDATE | GROWSDOWN, Some(EINVAL)),
            (VALIDATE | ANONYMOUS, Some(EINVAL)),
            (VALIDATE | ANONYMOUS | SYNC, Some(EINVAL)),
            (SHARED | SYNC, None),
            (SHARED | GROWSDOWN, Some(EINVAL)),
            (SHARED | ANONYMOUS | GROWSDOWN, Some(EINVAL)),
            (PRIVATE | SYNC, None),
            (PRIVATE | ANONYMOUS | GROWSDOWN, None),
            (0, Some(EINVAL)),
            (4, Some(EINVAL)),
            (0xf, Some(EINVAL)),
        ] {
            let got = map(p, READ, flags, file).await?;
            assert_eq!((got < 0).then_some(got), error, "{flags:#x}");
        }
        Ok(())
    });
}
