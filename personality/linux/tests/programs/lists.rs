//! Tests of access control lists of files (acl(5)).

use crate::run;
use crate::world::{self, DATA, Program};

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";
const EPERM: i64 = -1;
const EACCES: i64 = -13;
const EINVAL: i64 = -22;
const ENODATA: i64 = -61;
const VALUE: u64 = DATA + 0x1000;
const STAT: u64 = DATA + 0x2000;

/// A list in the layout of extended attributes: tags, rights and ids.
fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

const NONE: u32 = u32::MAX;

async fn set(p: &mut Program, path: &str, name: &str, value: &[u8]) -> Result<i64, world::Gone> {
    let (path, name) = (p.string(DATA, path).await?, p.string(DATA + 0x100, name).await?);
    p.store(VALUE, value).await?;
    p.call(188, &[path, name, VALUE, value.len() as u64, 0]).await
}

async fn remove(p: &mut Program, path: &str, name: &str) -> Result<i64, world::Gone> {
    let (path, name) = (p.string(DATA, path).await?, p.string(DATA + 0x100, name).await?);
    p.call(197, &[path, name]).await
}

/// The list of a file, or an error.
async fn get(p: &mut Program, path: &str, name: &str) -> Result<Result<Vec<u8>, i64>, world::Gone> {
    let (path, name) = (p.string(DATA, path).await?, p.string(DATA + 0x100, name).await?);
    let length = p.call(191, &[path, name, VALUE, 1024]).await?;
    if length < 0 {
        return Ok(Err(length));
    }
    let bytes = p.load::<1024>(VALUE).await?;
    Ok(Ok(bytes[..length as usize].to_vec()))
}

async fn mode(p: &mut Program, path: &str) -> Result<u32, world::Gone> {
    let path = p.string(DATA, path).await?;
    assert_eq!(p.call(4, &[path, STAT]).await?, 0);
    Ok(p.load_u32(STAT + 24).await? & 0o7777)
}

/// Makes a file or a directory.
async fn make(p: &mut Program, path: &str, mode: u64, directory: bool) -> Result<(), world::Gone> {
    let path = p.string(DATA, path).await?;
    if directory {
        assert_eq!(p.call(83, &[path, mode]).await?, 0);
    } else {
        let file = p.call(2, &[path, 0o101, mode]).await?;
        assert!(file >= 0, "{file}");
        assert_eq!(p.call(3, &[file as u64]).await?, 0);
    }
    Ok(())
}

/// What access(2) of a file says to a user and a group.
async fn access(p: &mut Program, who: (u64, u64), path: &str, access: u64) -> Result<i64, world::Gone> {
    let path = p.string(DATA, path).await?;
    let child = p
        .fork(move |p| {
            Box::pin(async move {
                assert_eq!(p.call(116, &[0, 0]).await?, 0);
                assert_eq!(p.call(106, &[who.1]).await?, 0);
                assert_eq!(p.call(105, &[who.0]).await?, 0);
                let result = p.call(21, &[path, access]).await?;
                p.exit((-result) as u64).await
            })
        })
        .await?;
    let (ended, status) = p.wait(0).await?;
    assert_eq!(ended, child);
    Ok(-i64::from(status >> 8))
}

#[test]
fn a_list_says_what_named_users_and_groups_may_do() {
    run(async |p| {
        make(p, "/file", 0o640, false).await?;
        assert_eq!(get(p, "/file", ACCESS).await?, Err(ENODATA));
        assert_eq!(access(p, (1000, 1000), "/file", 4).await?, EACCES);
        let full =
            list(&[(1, 6, NONE), (2, 6, 1000), (4, 4, NONE), (8, 2, 50), (16, 6, NONE), (32, 0, NONE)]);
        assert_eq!(set(p, "/file", ACCESS, &full).await?, 0);
        assert_eq!(get(p, "/file", ACCESS).await?, Ok(full.clone()));
        assert_eq!(mode(p, "/file").await?, 0o660, "the mask is shown as the group's rights");
        assert_eq!(access(p, (1000, 1000), "/file", 6).await?, 0);
        assert_eq!(access(p, (1001, 50), "/file", 2).await?, 0);
        assert_eq!(access(p, (1001, 50), "/file", 4).await?, EACCES);
        assert_eq!(access(p, (1001, 0), "/file", 4).await?, 0);
        assert_eq!(access(p, (1001, 0), "/file", 2).await?, EACCES, "the group has less than the mask");
        assert_eq!(access(p, (1001, 1000), "/file", 4).await?, EACCES);
        // chmod changes the mask, which limits what the list gives.
        let path = p.string(DATA, "/file").await?;
        assert_eq!(p.call(90, &[path, 0o644]).await?, 0);
        let limited =
            list(&[(1, 6, NONE), (2, 6, 1000), (4, 4, NONE), (8, 2, 50), (16, 4, NONE), (32, 4, NONE)]);
        assert_eq!(get(p, "/file", ACCESS).await?, Ok(limited));
        assert_eq!(access(p, (1000, 1000), "/file", 2).await?, EACCES);
        assert_eq!(access(p, (1000, 1000), "/file", 4).await?, 0);
        // A list that says no more than a mode is one; and removing a list keeps the mode.
        assert_eq!(set(p, "/file", ACCESS, &list(&[(1, 7, NONE), (4, 5, NONE), (32, 1, NONE)])).await?, 0);
        assert_eq!((mode(p, "/file").await?, get(p, "/file", ACCESS).await?), (0o751, Err(ENODATA)));
        assert_eq!(set(p, "/file", ACCESS, &full).await?, 0);
        assert_eq!(remove(p, "/file", ACCESS).await?, 0);
        assert_eq!((mode(p, "/file").await?, get(p, "/file", ACCESS).await?), (0o660, Err(ENODATA)));
        assert_eq!(remove(p, "/file", ACCESS).await?, 0, "there is none");
        Ok(())
    });
}

#[test]
fn a_default_list_takes_the_place_of_the_umask() {
    run(async |p| {
        make(p, "/directory", 0o755, true).await?;
        assert_eq!(get(p, "/directory", DEFAULT).await?, Err(ENODATA));
        let default = list(&[(1, 7, NONE), (2, 7, 1000), (4, 5, NONE), (16, 7, NONE), (32, 5, NONE)]);
        assert_eq!(set(p, "/directory", DEFAULT, &default).await?, 0);
        assert_eq!(mode(p, "/directory").await?, 0o755);
        assert_eq!(p.call(95, &[0o077]).await?, 0o022);
        make(p, "/directory/file", 0o664, false).await?;
        assert_eq!(mode(p, "/directory/file").await?, 0o664);
        let inherited = list(&[(1, 6, NONE), (2, 7, 1000), (4, 5, NONE), (16, 6, NONE), (32, 4, NONE)]);
        assert_eq!(get(p, "/directory/file", ACCESS).await?, Ok(inherited));
        assert_eq!(get(p, "/directory/file", DEFAULT).await?, Err(ENODATA));
        make(p, "/directory/below", 0o777, true).await?;
        assert_eq!(get(p, "/directory/below", DEFAULT).await?, Ok(default.clone()));
        assert_eq!(get(p, "/directory/below", ACCESS).await?, Ok(default.clone()));
        assert_eq!(mode(p, "/directory/below").await?, 0o775);
        let (target, link) =
            (p.string(DATA, "file").await?, p.string(DATA + 0x100, "/directory/link").await?);
        assert_eq!(p.call(88, &[target, link]).await?, 0);
        // A list that says no more than a mode gives a mode.
        let plain = list(&[(1, 7, NONE), (4, 5, NONE), (32, 0, NONE)]);
        assert_eq!(set(p, "/directory", DEFAULT, &plain).await?, 0);
        make(p, "/directory/plain", 0o666, false).await?;
        assert_eq!(mode(p, "/directory/plain").await?, 0o640);
        assert_eq!(get(p, "/directory/plain", ACCESS).await?, Err(ENODATA));
        assert_eq!(remove(p, "/directory", DEFAULT).await?, 0);
        make(p, "/directory/masked", 0o666, false).await?;
        assert_eq!(mode(p, "/directory/masked").await?, 0o600);
        Ok(())
    });
}

#[test]
fn lists_that_are_none_and_callers_that_may_not_set_them() {
    run(async |p| {
        make(p, "/file", 0o666, false).await?;
        for wrong in [
            list(&[(1, 6, NONE)]),
            list(&[(1, 6, NONE), (2, 6, 1000), (4, 4, NONE), (32, 0, NONE)]),
            list(&[(1, 8, NONE), (4, 4, NONE), (32, 0, NONE)]),
            list(&[(4, 4, NONE), (1, 6, NONE), (32, 0, NONE)]),
            list(&[(1, 6, NONE), (4, 4, NONE), (32, 0, NONE)])[..20].to_vec(),
            vec![2, 0, 0],
        ] {
            assert_eq!(set(p, "/file", ACCESS, &wrong).await?, EINVAL, "{wrong:?}");
        }
        assert_eq!(set(p, "/file", ACCESS, &[1, 0, 0, 0]).await?, -95, "another version");
        let full = list(&[(1, 6, NONE), (2, 6, 1000), (4, 4, NONE), (16, 6, NONE), (32, 0, NONE)]);
        assert_eq!(set(p, "/file", DEFAULT, &full).await?, EACCES, "no directory");
        assert_eq!(remove(p, "/file", DEFAULT).await?, 0);
        assert_eq!(get(p, "/file", "system.other").await?, Err(-95));
        assert_eq!(set(p, "/file", ACCESS, &full).await?, 0);
        p.fork(move |p| {
            let full = full.clone();
            Box::pin(async move {
                assert_eq!(p.call(105, &[1000]).await?, 0);
                assert_eq!(get(p, "/file", ACCESS).await?, Ok(full.clone()));
                assert_eq!(set(p, "/file", ACCESS, &full).await?, EPERM);
                assert_eq!(remove(p, "/file", ACCESS).await?, EPERM);
                p.exit(0).await
            })
        })
        .await?;
        assert_eq!(p.wait(0).await?.1, 0);
        // Of many users the one that is named has the rights.
        let many: Vec<_> = (0..2500).map(|id| (2, 7, id)).collect();
        let long = [&[(1, 6, NONE)], &many[..], &[(4, 4, NONE), (16, 6, NONE), (32, 0, NONE)]].concat();
        assert_eq!(set(p, "/file", ACCESS, &list(&long)).await?, 0);
        assert_eq!(access(p, (2499, 1), "/file", 6).await?, 0);
        assert_eq!(access(p, (2500, 1), "/file", 4).await?, EACCES);
        Ok(())
    });
}
